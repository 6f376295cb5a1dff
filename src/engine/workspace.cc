#include "engine/workspace.h"

#include "authority/local/file_anchor.h"
#include "authority/local/local_store.h"
#include "base/fault_point.h"
#include "base/json.h"
#include "engine/arguments.h"

namespace holdfast::engine {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kUnderWay = ".init-under-way";
constexpr std::string_view kProtocol = "holdfast.workspace.1";

Refusal invalid(const std::string& why) {
  return Refusal(Code::workspace_config_invalid, "workspace_config_invalid: .squad/config.json " + why,
                 Json{{"path", kConfig}});
}

Result<Json> read_config(os::ControlFolder& files) {
  HF_TRY(const auto bytes, files.read(kConfig));
  if (!bytes) return invalid("is gone, or `holdfast init` did not finish: run it again");
  JsonProblem problem;
  const auto document = parse_json(*bytes, &problem);
  if (!document) return invalid("is malformed: " + problem.text);
  if (text_member(*document, "protocol") != kProtocol || text_member(*document, "workspace_id").empty()) {
    return invalid("is of an unknown protocol");
  }
  return *document;
}

// Inode and birth time say which folder it is; the device number may change with a reboot.
bool is_the_one(const Json& config, const os::Identity& squad) {
  const os::Identity named = os::Identity::from_json(config.value("squad_identity", Json()));
  return named.inode == squad.inode && named.birth_ns == squad.birth_ns;
}

Result<void> check_identity(const Json& config, const os::Identity& squad) {
  if (is_the_one(config, squad)) return {};
  return Refusal(Code::workspace_copied,
                 "workspace_copied: this .squad is not the one that its config names; it was copied or restored",
                 Json{{"named", config.value("squad_identity", Json())},
                      {"found", squad.to_json()},
                      {"workspace_id", config.value("workspace_id", "")}});
}

Json new_config(const os::Identity& squad) {
  return Json{{"protocol", kProtocol},
              {"workspace_id", "ws-" + random_hex(16)},
              {"squad_identity", squad.to_json()},
              {"authority", "local"},
              {"anchor", nullptr},
              {"defaults", {{"ttl_seconds", kTtlMaxSeconds}}}};
}

Result<void> populate(const Held& held, os::ControlFolder& files, const os::Identity& squad) {
  const SystemClock clock;
  const Instant now = clock.now();
  HF_CHECK(files.publish(kUnderWay, "holdfast init\n"));
  HF_CHECK(files.publish(".gitignore", "*\n"));
  HF_FAULT_POINT("init_before_store");
  HF_CHECK(authority::LocalStore::create(held, files, now));
  HF_FAULT_POINT("init_before_config");
  HF_CHECK(files.publish(kConfig, dump_pretty(new_config(squad)) + "\n"));
  return files.remove(kUnderWay);
}

// `init --anchor FILE`: the file is made, and named in the config, with what the workspace has issued so far.
Result<Json> set_anchor(Context& context, const std::string& path) {
  HF_TRY(Transition transition, begin_transition(context, authority::Need::generations));
  const Generation high_water{high_water_of(transition.state.counters)};
  HF_TRY(auto anchor, authority::FileAnchor::open(path, context.workspace_id()));
  HF_CHECK(anchor->create(high_water));
  context.config["anchor"] = path;
  evidence::Event event;
  event.kind = "anchor_set";
  event.facts = {{"anchor", path}, {"high_water", high_water.text()}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  HF_CHECK(context.files->publish(kConfig, dump_pretty(context.config) + "\n"));
  return Json{
      {"created", false}, {"workspace_id", context.workspace_id()}, {"anchor", path}, {"evidence", ids.front()}};
}

Result<Json> move_identity(Context& context, const std::string& how, const std::string& reason) {
  HF_TRY(Transition transition, begin_transition(context));
  const Json before = context.config;
  context.config["squad_identity"] = context.folder.squad_facts.identity.to_json();
  if (how == "new_id") {
    context.config["workspace_id"] = "ws-" + random_hex(16);
    context.config["anchor"] = nullptr;  // it is the other workspace's
  }
  evidence::Event event;
  event.kind = how == "new_id" ? "workspace_given_new_id" : "workspace_adopted";
  event.facts = {{"reason", reason}, {"before", before}, {"after", context.config}};
  HF_TRY(const auto ids, record(context, transition, {std::move(event)}));
  HF_CHECK(context.files->publish(kConfig, dump_pretty(context.config) + "\n"));
  return Json{{"created", false},
              {"workspace_id", context.workspace_id()},
              {how == "new_id" ? "new_id" : "adopted", true},
              {"evidence", ids.front()}};
}

Result<std::unique_ptr<Context>> open_parts(const std::string& root, EngineOptions options, bool check_copied) {
  auto context = std::make_unique<Context>();
  context->options = options;
  context->root_path = root;
  HF_TRY(context->folder, os::open_workspace(root));
  HF_TRY(context->files, os::open_control_folder(context->folder.squad));
  HF_TRY(context->config, read_config(*context->files));
  if (check_copied) HF_CHECK(check_identity(context->config, context->folder.squad_facts.identity));
  if (options.mode != EngineMode::observer && !context->folder.local) {
    return Refusal(Code::workspace_not_local,
                   "workspace_not_local: .squad is on " + context->folder.file_system +
                       "; liveness, guard and boot clock need a local file system",
                   Json{{"file_system", context->folder.file_system}});
  }
  HF_TRY(context->mutex, os::TransitionMutex::open(context->folder.squad, options.transition_limit_ms));
  HF_TRY(context->vault, vault::Vault::open(context->folder.squad));
  context->chain = std::make_unique<evidence::Chain>(*context->files);
  context->records = std::make_unique<evidence::Records>(*context->files);
  std::unique_ptr<authority::Anchor> anchor;
  if (const std::string path = text_member(context->config, "anchor"); !path.empty()) {
    HF_TRY(anchor, authority::FileAnchor::open(path, context->workspace_id()));
  }
  context->store = std::make_unique<authority::LocalStore>(*context->files, *context->chain, std::move(anchor));
  context->self.is_server = options.mode == EngineMode::server;
  context->self.process = os::this_process();
  context->self.session = options.session;
  return context;
}

}  // namespace

Result<std::unique_ptr<Context>> open_context(const std::string& root, EngineOptions options) {
  HF_TRY(auto context, open_parts(root, std::move(options), true));
  if (context->is_server()) { HF_TRY(context->guards, guard::make_guards(context->folder.root)); }
  return context;
}

Result<Json> initialise_workspace(const std::string& root, const Json& json) {
  const Arguments arguments(json);
  HF_TRY(const bool adopt, arguments.flag("adopt"));
  HF_TRY(const bool new_id, arguments.flag("new_id"));
  if (adopt && new_id) return usage("--adopt and --new-id exclude each other");
  if (adopt || new_id) {
    HF_TRY(const std::string reason, arguments.text("reason"));
    EngineOptions options;
    options.mode = EngineMode::direct;
    HF_TRY(auto context, open_parts(root, options, false));
    return move_identity(*context, new_id ? "new_id" : "adopted", reason);
  }
  HF_TRY(const auto anchor, arguments.optional_text("anchor"));
  if (anchor) {
    HF_TRY(const Json first, initialise_workspace(root, Json::object()));
    EngineOptions options;
    options.mode = EngineMode::direct;
    HF_TRY(auto context, open_context(root, options));
    return set_anchor(*context, *anchor);
  }
  HF_TRY(const bool made, os::make_squad(root));
  HF_TRY(const os::WorkspaceFolder folder, os::open_workspace(root));
  HF_TRY(auto files, os::open_control_folder(folder.squad));
  HF_TRY(const auto existing, files->read(kConfig));
  if (!existing) {
    // Ours to fill: made just now, or left half-filled by an init that a crash ended (nothing opens it without config).
    HF_TRY(const auto under_way, files->read(kUnderWay));
    if (!made && !under_way) {
      HF_TRY(const auto names, files->list(""));
      const bool only_the_mutex = names.empty() || (names.size() == 1 && names.front() == ".lease-transition.mutex");
      if (!only_the_mutex) return invalid("is gone; what else is there was left as it is");
    }
    if (!folder.local) {
      return Refusal(Code::workspace_not_local, "workspace_not_local: " + folder.file_system,
                     Json{{"file_system", folder.file_system}});
    }
    HF_TRY(auto mutex, os::TransitionMutex::open(folder.squad));
    HF_TRY(const Held held, mutex->acquire());
    HF_TRY(const auto meanwhile, files->read(kConfig));
    if (!meanwhile) HF_CHECK(populate(held, *files, folder.squad_facts.identity));
  }
  HF_TRY(const Json config, read_config(*files));
  HF_CHECK(check_identity(config, folder.squad_facts.identity));
  return Json{{"created", !existing.has_value()},
              {"workspace_id", config["workspace_id"]},
              {"file_system", folder.file_system}};
}

}  // namespace holdfast::engine
