#include "server/exchange.h"

#include "base/json.h"

namespace holdfast {

bool takes_content(const std::string& verb) { return verb == "write"; }

Result<void> send_document(os::Connection& connection, const Json& document) {
  const std::string text = dump_ascii(document);
  std::string_view rest = text;
  for (; rest.size() > os::Connection::kFrameMax; rest.remove_prefix(os::Connection::kFrameMax)) {
    HF_CHECK(connection.send('C', rest.substr(0, os::Connection::kFrameMax)));
  }
  return connection.send('J', rest);
}

Result<std::optional<Json>> DocumentAssembly::add(os::Frame frame) {
  if (frame.kind != 'C' && frame.kind != 'J') {
    return Refusal(Code::request_malformed, "a frame of another kind where a document was expected",
                   Json{{"kind", std::string(1, frame.kind)}});
  }
  if (text_.size() + frame.payload.size() > kDocumentMax) {
    return Refusal(Code::request_malformed, "a document larger than is taken", Json{{"document_max", kDocumentMax}});
  }
  text_ += frame.payload;
  if (frame.kind == 'C') return std::optional<Json>();
  JsonProblem problem{};
  std::optional<Json> document = parse_json(text_, &problem);
  text_.clear();
  text_.shrink_to_fit();
  if (document) return document;
  return Refusal(Code::request_malformed, "no JSON document: " + problem.text);
}

Result<std::optional<Json>> receive_document(os::Connection& connection) {
  DocumentAssembly assembly;
  for (bool started = false;; started = true) {
    HF_TRY(std::optional<os::Frame> frame, connection.receive());
    if (!frame && started) return Refusal(Code::server_answer_lost, "the connection ended within a document");
    if (!frame) return std::optional<Json>();
    HF_TRY(std::optional<Json> document, assembly.add(std::move(*frame)));
    if (document) return document;
  }
}

}  // namespace holdfast
