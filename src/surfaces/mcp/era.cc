#include "surfaces/mcp/era.h"

#include <algorithm>
#include <array>

#include "base/json.h"

namespace holdfast::mcp {
namespace {

constexpr const char* kVersionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kServerInfoKey = "io.modelcontextprotocol/serverInfo";
constexpr std::int64_t kStableMs = 3'600'000;

Problem missing(const std::string& what) { return Problem{kInvalidParams, what, Json(), Json()}; }

std::variant<Form, Problem> modern_form(const Json& meta) {
  if (!meta.contains(kVersionKey) || !meta[kVersionKey].is_string()) {
    return missing(std::string("_meta has no ") + kVersionKey);
  }
  const std::string version = meta[kVersionKey].get<std::string>();
  if (version != kModern) {
    return Problem{kUnsupportedVersion, "Unsupported protocol version",
                   Json{{"supported", {kModern}}, {"requested", version.substr(0, 200)}}, Json()};
  }
  if (!meta.contains(kCapabilitiesKey) || !meta[kCapabilitiesKey].is_object()) {
    return missing(std::string("_meta has no ") + kCapabilitiesKey);
  }
  return Form{true, version};
}

}  // namespace

bool is_legacy_revision(std::string_view version) {
  static constexpr std::array<std::string_view, 4> kAll = {"2024-11-05", "2025-03-26", "2025-06-18", kNewestLegacy};
  return std::find(kAll.begin(), kAll.end(), version) != kAll.end();
}

std::variant<Form, Problem> form_of(const Message& request, const std::string& negotiated) {
  const Json meta = request.params.value("_meta", Json::object());
  if (!meta.is_object()) return missing("_meta is no object");
  if (meta.contains(kVersionKey) || meta.contains(kCapabilitiesKey)) return modern_form(meta);
  if (request.method == "initialize") return Form{false, std::string(kNewestLegacy)};
  if (request.method == "ping") return Form{false, negotiated.empty() ? std::string(kNewestLegacy) : negotiated};
  if (request.method == "server/discover" || negotiated.empty()) {
    return missing(std::string("_meta has no ") + kVersionKey +
                   (negotiated.empty() ? ", and nothing was settled by initialize" : ""));
  }
  return Form{false, negotiated};
}

Json shaped(Json result, const Form& form, Caching caching) {
  if (!form.is_modern) return result;
  if (!result.contains("resultType")) result["resultType"] = "complete";
  result["_meta"][kServerInfoKey] = server_info(form);
  if (caching != Caching::none) {
    result["ttlMs"] = caching == Caching::stable ? kStableMs : 0;
    result["cacheScope"] = caching == Caching::stable ? "public" : "private";
  }
  return result;
}

Json capabilities(bool is_modern) {
  Json all = {{"tools", Json::object()}, {"resources", {{"subscribe", true}}}};
  const Json adoption = {{"methods", {"squad/lease_adopt"}}};
  if (is_modern) {
    all["extensions"] = {{"dev.holdfast/squad", adoption}};
  } else {
    all["experimental"] = {{"squad", adoption}};
  }
  return all;
}

Json server_info(const Form& form) {
  Json info = {{"name", "holdfast"}, {"version", HOLDFAST_VERSION}};
  if (form.has_titles()) info["title"] = "Holdfast";
  return info;
}

std::string_view instructions() {
  return "Lease before you change a file: lease_acquire, then file_read, then file_write or file_edit with the digest "
         "that you read, then lease_release. Keep scope, owner, task, generation and started_at of the lease: every "
         "later call needs them. Renew with lease_heartbeat before the lease runs out. A refusal says who holds it "
         "and what to do next; after stale_lease_generation or lease_expired acquire again and read again.";
}

}  // namespace holdfast::mcp
