#include "engine/receiver_registry.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json.h"
#include "engine/arguments.h"
#include "holdfast/scope.h"

namespace holdfast::engine {
namespace {

constexpr std::string_view kProtocol = "holdfast.receiver.1";
constexpr std::string_view kFolder = "receivers";
constexpr std::string_view kInWorkspace = "project:/";
constexpr std::array kPaths = {"database", "state"};

std::string path_of(const std::string& name) { return std::string(kFolder) + "/" + name + ".json"; }

Refusal unreadable(const std::string& path, const std::string& why) {
  return Refusal(Code::state_unreadable, "state_unreadable: " + path + " " + why, Json{{"path", path}});
}

Result<Registered> read_receiver(const std::string& path, const std::string& bytes) {
  const auto document = parse_json(bytes);
  if (!document || text_member(*document, "protocol") != kProtocol) return unreadable(path, "is no receiver");
  Registered registered{.name = text_member(*document, "name"),
                        .kind = text_member(*document, "kind"),
                        .config = document->value("config", Json::object()),
                        .resource = text_member(*document, "resource"),
                        .marks = {},
                        .closed = document->value("closed", Json())};
  const Json marks = document->value("marks", Json());
  const bool has_shape = marks.is_object() && registered.config.is_object() && !registered.resource.empty() &&
                         (registered.closed.is_null() || registered.closed.is_object());
  if (!has_shape) return unreadable(path, "is cut");
  if (path != path_of(registered.name)) return unreadable(path, "is the record of another receiver");
  for (const auto& [resource, mark] : marks.items()) {
    const auto generation = exact_u64(mark);
    if (!generation) return unreadable(path, "has a mark that is no generation");
    registered.marks[resource] = Generation{*generation};
  }
  return registered;
}

// A URI may write any letter as %XX.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    int code = 0;
    const char* digits = text.data() + at + 1;
    const bool is_escape =
        text[at] == '%' && at + 2 < text.size() && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
    plain += is_escape ? static_cast<char>(code) : text[at];
    if (is_escape) at += 2;
  }
  return plain;
}

}  // namespace

Json Registered::to_json() const {
  Json all = Json::object();
  for (const auto& [of, generation] : marks) all[of] = generation.text();
  return Json{{"protocol", kProtocol}, {"name", name}, {"kind", kind},    {"config", config},
              {"resource", resource},  {"marks", all}, {"closed", closed}};
}

std::optional<Generation> Registered::mark() const {
  const auto found = marks.find(resource);
  return found == marks.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<Registered>> registered_receivers(Context& context) {
  HF_TRY(const auto names, context.files->list(std::string(kFolder)));
  std::vector<Registered> all;
  for (const std::string& leaf : names) {
    if (!leaf.ends_with(".json")) continue;
    const std::string path = std::string(kFolder) + "/" + leaf;
    HF_TRY(const auto bytes, context.files->read(path));
    if (!bytes) continue;
    HF_TRY(Registered one, read_receiver(path, *bytes));
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::optional<Registered>> receiver_of(Context& context, const std::string& resource) {
  HF_TRY(const auto all, registered_receivers(context));
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Registered& one) { return one.resource == resource; });
  return found == all.end() ? std::optional<Registered>() : std::optional(*found);
}

Result<std::vector<Registered>> receivers_overlapping(Context& context, const Scope& scope) {
  HF_TRY(auto all, registered_receivers(context));
  std::erase_if(all, [&](const Registered& one) {
    const auto resource = parse_canonical_scope(one.resource);
    return !resource.ok() || !overlaps(*resource, scope);
  });
  return all;
}

// It would be kept in .squad and in the evidence, which is exported.
Result<void> check_no_password(const Json& config) {
  const std::string connection = text_member(config, "connection");
  const std::size_t user = connection.find("://");
  const std::size_t at = connection.find('@', user == std::string::npos ? 0 : user);
  const bool in_uri = user != std::string::npos && at != std::string::npos &&
                      connection.substr(user + 3, at - user - 3).find(':') != std::string::npos;
  if (!in_uri && unescaped(connection).find("password") == std::string::npos) return {};
  return usage("a connection with a password would be kept with the evidence: use a service file or ~/.pgpass");
}

Json opening_config(const Context& context, const Registered& registered) {
  Json config = registered.config;
  for (const char* member : kPaths) {
    const std::string path = text_member(config, member);
    if (path.starts_with(kInWorkspace)) config[member] = context.root_path + "/" + path.substr(kInWorkspace.size());
  }
  return config;
}

Json kept_config(const Context& context, const Json& config) {
  Json kept = config;
  for (const char* member : kPaths) {
    const std::string path = text_member(config, member);
    if (path.starts_with(context.root_path + "/")) {
      kept[member] = std::string(kInWorkspace) + path.substr(context.root_path.size() + 1);
    }
  }
  return kept;
}

Result<Registered> receiver_named(Context& context, const std::string& name) {
  HF_TRY(const auto all, registered_receivers(context));
  for (const Registered& one : all) {
    if (one.name == name) return one;
  }
  return Refusal(Code::not_found, "not_found: no receiver is called " + printable(name),
                 Json{{"name", printable(name)}});
}

Refusal no_receiver(const std::string& resource) {
  return Refusal(Code::not_found, "not_found: no receiver is registered for " + printable(resource),
                 Json{{"resource", printable(resource)}})
      .with_hint("register it with `holdfast receiver add`");
}

Result<void> save_receiver(Context& context, const Registered& registered) {
  return context.files->publish(path_of(registered.name), dump_pretty(registered.to_json()) + "\n");
}

Result<ReceiverInUse> use_receiver(Context& context, const Registered& registered) {
  std::shared_ptr<OpenReceiver> held;
  {
    const std::scoped_lock scoped(context.receivers_mutex);
    auto& slot = context.open_receivers[registered.name];
    if (!slot) slot = std::make_shared<OpenReceiver>();
    held = slot;
  }
  std::unique_lock lock(held->mutex);
  if (!held->receiver) {
    if (!context.options.receivers) {
      return Refusal(Code::receiver_unreachable, "receiver_unreachable: this process has no receivers",
                     Json{{"name", registered.name}});
    }
    HF_TRY(held->receiver, context.options.receivers->open(registered.kind, opening_config(context, registered)));
  }
  return ReceiverInUse(std::move(held), std::move(lock));
}

void forget_receiver(Context& context, const std::string& name) {
  std::shared_ptr<OpenReceiver> held;
  {
    const std::scoped_lock scoped(context.receivers_mutex);
    if (const auto found = context.open_receivers.find(name); found != context.open_receivers.end())
      held = found->second;
  }
  if (!held) return;
  const std::scoped_lock used(held->mutex);
  held->receiver.reset();
}

}  // namespace holdfast::engine
