#include "surfaces/mcp/resources.h"

#include "base/json.h"

namespace holdfast::mcp {
namespace {

constexpr std::string_view kLeases = "holdfast://leases";
constexpr std::string_view kEvidence = "holdfast://evidence/";
constexpr std::string_view kQuarantine = "holdfast://quarantine/";
constexpr const char* kType = "application/json";

Json described(std::string_view name, std::string_view title, std::string_view description) {
  return Json{{"name", name}, {"title", title}, {"description", description}, {"mimeType", kType}};
}

Refusal no_such_resource(const std::string& uri) {
  return Refusal(Code::not_found, "there is no resource " + printable(uri), Json{{"uri", printable(uri)}});
}

}  // namespace

Json resource_list() {
  Json leases = described("leases", "Leases", "Who holds what, since when, until when, and what the kernel enforces.");
  leases["uri"] = kLeases;
  return Json::array({std::move(leases)});
}

Json resource_template_list() {
  Json event = described("evidence", "An event of the evidence",
                         "What happened, with its facts and the events that led to it and followed from it.");
  event["uriTemplate"] = std::string(kEvidence) + "{id}";
  Json bytes = described("quarantine", "Quarantined bytes", "Where bytes came from that were kept as evidence.");
  bytes["uriTemplate"] = std::string(kQuarantine) + "{id}";
  return Json::array({std::move(event), std::move(bytes)});
}

Result<Json> read_resource(ServerLink& link, const std::string& uri, Cancellation& cancellation) {
  if (uri == kLeases) return link.ask("leases", Json::object(), Repeat::safe, cancellation);
  for (const auto& [prefix, verb] :
       {std::pair(kEvidence, "evidence_show"), std::pair(kQuarantine, "quarantine_show")}) {
    if (!uri.starts_with(prefix) || uri.size() == prefix.size()) continue;
    auto answer = link.ask(verb, Json{{"id", uri.substr(prefix.size())}}, Repeat::safe, cancellation);
    const bool bad_id = !answer.ok() && answer.refusal().code() == Code::usage;
    if (bad_id) return no_such_resource(uri);
    return answer;
  }
  return no_such_resource(uri);
}

Result<std::string> fingerprint_of_resource(ServerLink& link, const std::string& uri, Cancellation& cancellation) {
  HF_TRY(Json document, read_resource(link, uri, cancellation));
  if (document.contains("leases")) {
    for (Json& record : document["leases"]) {
      record.erase("age_seconds");
      record.erase("remaining_seconds");
    }
  }
  return dump_canonical(document);
}

}  // namespace holdfast::mcp
