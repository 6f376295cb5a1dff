#include "lease/tenancy.h"

#include "base/json.h"

namespace holdfast {
namespace {

constexpr std::string_view kProtocol = "holdfast.tenancy.1";

Refusal unreadable(const std::string& what) { return Refusal(Code::state_unreadable, "a tenancy record " + what); }

bool has_text(const Json& value, const char* key) { return value.contains(key) && value[key].is_string(); }

}  // namespace

Result<std::int64_t> parse_ttl(std::string_view text) {
  const auto invalid = [&] {
    return Refusal(Code::lease_ttl_invalid, "\"" + printable(text) + "\" is no time: say 15m, 90s or minutes",
                   Json{{"ttl", printable(text)}});
  };
  std::int64_t unit = 60;
  std::string_view digits = text;
  if (!text.empty() && (text.back() == 'm' || text.back() == 's')) {
    unit = text.back() == 'm' ? 60 : 1;
    digits.remove_suffix(1);
  }
  const auto amount = parse_u64(digits);
  if (!amount || *amount == 0) return invalid();
  if (*amount > static_cast<std::uint64_t>(kTtlMaxSeconds)) return kTtlMaxSeconds;
  return std::min(kTtlMaxSeconds, static_cast<std::int64_t>(*amount) * unit);
}

Json Holder::to_json() const {
  Json value = process.to_json();
  value["kind"] = is_server ? "server" : "process";
  value["session"] = session.empty() ? Json(nullptr) : Json(session);
  return value;
}

Holder Holder::from_json(const Json& value) {
  Holder holder;
  holder.is_server = text_member(value, "kind") == "server";
  holder.process = os::ProcessIdentity::from_json(value);
  holder.session = text_member(value, "session");
  return holder;
}

Json PreWrite::to_json() const {
  return Json{{"exists", exists}, {"kind", kind}, {"fnv1a", fnv1a}, {"byte_count", byte_count}, {"sha256", sha256}};
}

PreWrite PreWrite::from_json(const Json& value) {
  PreWrite before;
  if (!value.is_object()) return before;
  before.exists = value.contains("exists") && value["exists"].is_boolean() && value["exists"].get<bool>();
  before.kind = text_member(value, "kind");
  before.fnv1a = text_member(value, "fnv1a");
  before.byte_count = exact_u64(value.value("byte_count", Json(0U))).value_or(0);
  before.sha256 = text_member(value, "sha256");
  return before;
}

void Tenancy::renew(const Instant& now, std::int64_t ttl) {
  ttl_seconds = std::min(ttl, kTtlMaxSeconds);
  deadline = {now.boot_ms + ttl_seconds * 1000, now.boot_id};
  expires_at = format_wall(now.wall_us + ttl_seconds * 1'000'000);
}

Json Tenancy::to_json() const {
  Json value = {
      {"protocol", kProtocol},
      {"namespace", name_of(scope.ns)},
      {"resource_id", scope.resource_id},
      {"owner", owner},
      {"task_id", task_id},
      {"generation", generation.text()},
      {"started_at", started_at},
      {"expires_at", expires_at},
      {"ttl_seconds", ttl_seconds},
      {"deadline", {{"boot_ms", std::to_string(deadline.boot_ms)}, {"boot_id", deadline.boot_id}}},
      {"holder", holder.to_json()},
      {"client", client ? client->to_json() : Json(nullptr)},
      {"command", command ? command->to_json() : Json(nullptr)},
      {"bound", bound},
      {"confined", confined},
      {"control_epoch", control_epoch.text()},
      {"os_lock", os_lock},
      {"pre_write", pre_write.to_json()},
      {"post_sha256", post_sha256.empty() ? Json(nullptr) : Json(post_sha256)},
      {"last_operation_id", last_operation_id.empty() ? Json(nullptr) : Json(last_operation_id)},
      {"identity", identity.to_json()},
      {"post_absent", post_absent},
      {"enforced_at_grant", enforced_at_grant},
      {"parent_identity", parent_identity.to_json()},
      {"observed", observed},
      {"contract", contract},
      {"event", event},
  };
  return value;
}

Result<Tenancy> tenancy_from_json(const Json& value) {
  if (!value.is_object()) return unreadable("that is no object");
  if (text_member(value, "protocol") != kProtocol) return unreadable("of an unknown protocol");
  for (const char* key : {"namespace", "resource_id", "owner", "task_id", "started_at", "expires_at"}) {
    if (!has_text(value, key)) return unreadable(std::string("without ") + key);
  }
  for (const char* key : {"deadline", "holder", "os_lock", "pre_write", "contract"}) {
    if (!value.contains(key) || !value[key].is_object()) return unreadable(std::string("without ") + key);
  }
  const auto ns = namespace_named(value["namespace"].get<std::string>());
  const auto generation = exact_u64(value.value("generation", Json()));
  const auto epoch = exact_u64(value.value("control_epoch", Json()));
  const Json ttl = value.value("ttl_seconds", Json());
  const std::string boot_ms = text_member(value["deadline"], "boot_ms");
  if (!ns || !generation || *generation == 0 || !epoch || !ttl.is_number_integer() || boot_ms.empty()) {
    return unreadable("with a malformed number");
  }
  Tenancy tenancy;
  // Whatever is asked of a scope later relies on its form.
  auto scope = parse_canonical_scope(std::string(name_of(*ns)) + "://" + value["resource_id"].get<std::string>());
  if (!scope.ok()) return unreadable("on no canonical scope");
  tenancy.scope = std::move(*scope);
  tenancy.owner = value["owner"].get<std::string>();
  tenancy.task_id = value["task_id"].get<std::string>();
  tenancy.generation = Generation{*generation};
  tenancy.started_at = value["started_at"].get<std::string>();
  tenancy.expires_at = value["expires_at"].get<std::string>();
  tenancy.ttl_seconds = ttl.get<std::int64_t>();
  tenancy.deadline = {std::strtoll(boot_ms.c_str(), nullptr, 10), text_member(value["deadline"], "boot_id")};
  tenancy.holder = Holder::from_json(value["holder"]);
  if (value.contains("client") && value["client"].is_object()) {
    tenancy.client = os::ProcessIdentity::from_json(value["client"]);
  }
  if (value.contains("command") && value["command"].is_object()) {
    tenancy.command = os::ProcessIdentity::from_json(value["command"]);
  }
  tenancy.bound = value.contains("bound") && value["bound"] == Json(true);
  tenancy.confined = value.contains("confined") && value["confined"] == Json(true);
  tenancy.control_epoch = Epoch{*epoch};
  tenancy.os_lock = value["os_lock"];
  tenancy.enforced_at_grant = value.value("enforced_at_grant", Json()) == Json(true);
  tenancy.pre_write = PreWrite::from_json(value["pre_write"]);
  tenancy.post_sha256 = text_member(value, "post_sha256");
  tenancy.post_absent = value.value("post_absent", Json()) == Json(true);
  tenancy.last_operation_id = text_member(value, "last_operation_id");
  tenancy.identity = os::Identity::from_json(value.value("identity", Json()));
  tenancy.parent_identity = os::Identity::from_json(value.value("parent_identity", Json()));
  if (value.contains("observed") && value["observed"].is_array()) tenancy.observed = value["observed"];
  tenancy.contract = value["contract"];
  tenancy.event = text_member(value, "event");
  return tenancy;
}

Json EndedTenancy::to_json() const {
  Json value = tenancy.to_json();
  value["ended"] = {{"at", ended_at}, {"by", ended_by}, {"event", event}, {"content_check", content_check}};
  return value;
}

Result<EndedTenancy> ended_from_json(const Json& value) {
  EndedTenancy ended;
  HF_TRY(ended.tenancy, tenancy_from_json(value));
  const Json end = value.value("ended", Json());
  if (!end.is_object() || !has_text(end, "by")) return unreadable("of an ended tenancy that says no end");
  ended.ended_at = text_member(end, "at");
  ended.ended_by = text_member(end, "by");
  ended.event = text_member(end, "event");
  ended.content_check = end.value("content_check", Json::object());
  return ended;
}

Json describe_holder(const Tenancy& tenancy, const Instant& now) {
  const std::int64_t left =
      tenancy.deadline.boot_id == now.boot_id ? (tenancy.deadline.boot_ms - now.boot_ms) / 1000 : 0;
  return Json{{"scope", tenancy.scope.full()},
              {"owner", tenancy.owner},
              {"task_id", tenancy.task_id},
              {"generation", tenancy.generation.text()},
              {"pid", tenancy.client ? tenancy.client->pid : tenancy.holder.process.pid},
              {"held_by", tenancy.holder.is_server ? "server" : "process"},
              {"since", tenancy.started_at},
              {"until", tenancy.expires_at},
              {"remaining_seconds", std::max<std::int64_t>(left, 0)}};
}

namespace {

bool keys_match(const TenancyKeys& keys, const Tenancy& tenancy) {
  return keys.owner == tenancy.owner && keys.task_id == tenancy.task_id && keys.generation == tenancy.generation &&
         keys.started_at == tenancy.started_at;
}

Refusal stale(const Scope& scope, const TenancyKeys& keys, const std::string& current, const Tenancy* tenancy,
              const Instant& now) {
  Json details = {{"scope", scope.full()}, {"expected", keys.generation.text()}, {"current", current}};
  if (tenancy != nullptr) {
    details["holder"] = describe_holder(*tenancy, now);
    Json differing = Json::array();
    if (keys.owner != tenancy->owner) differing.push_back("owner");
    if (keys.task_id != tenancy->task_id) differing.push_back("task_id");
    if (keys.generation != tenancy->generation) differing.push_back("generation");
    if (keys.started_at != tenancy->started_at) differing.push_back("started_at");
    details["differing_keys"] = std::move(differing);
  }
  std::string message = "stale_lease_generation: expected " + keys.generation.text() + ", current " + current;
  if (tenancy == nullptr && keys.generation.text() == current) message += " (that tenancy has ended)";
  if (tenancy != nullptr && keys.generation == tenancy->generation) {
    message += " (another of the six tenancy keys differs)";
  }
  return Refusal(Code::stale_lease_generation, std::move(message), std::move(details));
}

Refusal expired(const Scope& scope, const Tenancy& tenancy) {
  return Refusal(
      Code::lease_expired,
      "lease_expired: generation " + tenancy.generation.text() + " of " + scope.display() + " expired at " +
          tenancy.expires_at + "; it is never renewed",
      Json{{"scope", scope.full()}, {"generation", tenancy.generation.text()}, {"expired_at", tenancy.expires_at}});
}

Refusal revoked(const Scope& scope, const Tenancy& tenancy, Epoch epoch) {
  return Refusal(Code::control_epoch_revoked,
                 "control_epoch_revoked: generation " + tenancy.generation.text() + " was granted under epoch " +
                     tenancy.control_epoch.text() + ", the epoch is " + epoch.text(),
                 Json{{"scope", scope.full()},
                      {"generation", tenancy.generation.text()},
                      {"granted_epoch", tenancy.control_epoch.text()},
                      {"control_epoch", epoch.text()}});
}

}  // namespace

Result<void> judge_keys(const Scope& scope, const TenancyKeys& keys, const std::optional<Tenancy>& current,
                        const std::optional<EndedTenancy>& last, Epoch epoch, const Instant& now) {
  if (current) {
    if (!keys_match(keys, *current)) return stale(scope, keys, current->generation.text(), &*current, now);
    if (current->control_epoch < epoch) return revoked(scope, *current, epoch);
    if (current->expired_at(now)) return expired(scope, *current);
    return {};
  }
  if (!last) return stale(scope, keys, "none", nullptr, now);
  if (keys_match(keys, last->tenancy) && last->ended_by == "expiry") return expired(scope, last->tenancy);
  if (keys_match(keys, last->tenancy) && last->ended_by == "epoch") return revoked(scope, last->tenancy, epoch);
  Refusal refusal = stale(scope, keys, last->tenancy.generation.text(), nullptr, now);
  return std::move(refusal).with("ended", Json{{"by", last->ended_by}, {"at", last->ended_at}});
}

}  // namespace holdfast
