#include "surfaces/cli/bytes_verbs.h"

#include <cstdio>
#include <system_error>

#include "base/base64.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/piece.h"
#include "os/file.h"
#include "os/stream.h"
#include "surfaces/cli/content.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/request.h"
#include "surfaces/cli/request_path.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

constexpr std::uint64_t kJsonMax = 64U << 20U;

using Take = std::function<Result<void>(std::string_view)>;

// The object's bytes from front to end, and what they are.
Result<ContentDigest> copy(const os::Handle& object, const Take& take) {
  Piece piece;
  Sha256 sha256;
  ContentDigest digest;
  for (;;) {
    HF_TRY(const std::size_t count, os::read_at(object, digest.byte_count, piece.data(), piece.size()));
    if (count == 0) break;
    const std::string_view bytes(piece.data(), count);
    HF_CHECK(take(bytes));
    sha256.add(bytes);
    digest.byte_count += count;
  }
  digest.sha256 = sha256.hex();
  return digest;
}

Result<Engine::Bytes> open_bytes(const Json& request, const std::string& root, const Surroundings& surroundings) {
  HF_TRY(const auto engine, open_observer(root, surroundings));
  return engine->open_bytes(request);
}

// To standard output, where the status is all that is left to say how it went.
int print_bytes(const os::Handle& object, Output& output) {
  const auto copied = copy(object, [&output](std::string_view bytes) { return output.bytes(bytes); });
  if (copied) return 0;
  output.diagnostic(human_refusal(copied.refusal()));
  return copied.refusal().exit_status();
}

Result<Json> read_document(const Engine::Bytes& found) {
  HF_TRY(const os::Facts facts, os::facts_of_open(found.object));
  if (facts.byte_count > kJsonMax) {
    return Refusal(Code::file_unreadable, "the file has " + human_bytes(facts.byte_count) + ", too much for a document",
                   Json{{"byte_count", facts.byte_count}, {"byte_count_max", kJsonMax}})
        .with_hint("leave --json out: the bytes themselves have no limit");
  }
  std::string content;
  HF_TRY(const ContentDigest digest, copy(found.object, [&content](std::string_view bytes) -> Result<void> {
           if (content.size() + bytes.size() > kJsonMax) {
             return Refusal(Code::file_unreadable, "the file grew while it was read");
           }
           content.append(bytes);
           return {};
         }));
  // What the document says is what it carries, whatever was written to the file since it was opened.
  Json document = found.document;
  document["sha256"] = digest.sha256;
  document["byte_count"] = digest.byte_count;
  document["content_base64"] = base64_encode(content);
  return document;
}

Result<Json> export_to_file(const os::Handle& object, const std::string& id, const std::string& path) {
  auto made = os::create_file(path, Code::state_persist_failed);
  if (!made && made.refusal().details().value("os_error", Json()) == Json(static_cast<int>(std::errc::file_exists))) {
    return Refusal(Code::target_exists, "target_exists: " + printable(path), Json{{"to", printable(path)}});
  }
  HF_TRY(const os::Handle file, std::move(made));
  const auto copied = copy(
      object, [&file](std::string_view bytes) { return os::write_stream(file, bytes, Code::state_persist_failed); });
  const auto flushed = copied ? os::flush(file) : Result<void>(copied.refusal());
  if (!flushed) {
    std::remove(path.c_str());  // ours: it was made here, a moment ago
    return flushed.refusal();
  }
  return Json{
      {"exported", id}, {"to", printable(path)}, {"sha256", copied->sha256}, {"byte_count", copied->byte_count}};
}

}  // namespace

int run_read(const Json& request, const std::string& root, const Surroundings& surroundings, Output& output) {
  const auto found = open_bytes(request, root, surroundings);
  if (!found) return output.refuse(found.refusal());
  if (!output.json()) return print_bytes(found->object, output);
  const auto document = read_document(*found);
  return document ? output.document(*document) : output.refuse(document.refusal());
}

int run_quarantine_export(const Invocation& invocation, const Json& request, const std::string& root,
                          const Surroundings& surroundings, Output& output) {
  const auto found = open_bytes(request, root, surroundings);
  if (!found) return output.refuse(found.refusal());
  const std::string to = *invocation.value("--to");
  if (to == "-") return print_bytes(found->object, output);
  const auto done =
      export_to_file(found->object, invocation.positionals.front(), absolute_path(to, surroundings.current_folder));
  if (!done) return output.refuse(done.refusal());
  if (output.json()) return output.document(*done);
  return output.text(paragraph("exported  ", text_member(*done, "to")) +
                     paragraph("          ", human_bytes((*done)["byte_count"].get<std::uint64_t>()) + ", sha256 " +
                                                 text_member(*done, "sha256")));
}

}  // namespace holdfast::cli
