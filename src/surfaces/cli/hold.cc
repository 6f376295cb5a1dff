#include "surfaces/cli/hold.h"

#include <filesystem>
#include <memory>

#include "base/json.h"
#include "os/command_process.h"
#include "os/confinement.h"
#include "os/temporary_folder.h"
#include "os/unnamed_file.h"
#include "surfaces/cli/holding.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/request_path.h"

namespace holdfast::cli {
namespace {

constexpr int kLeaseLost = 75;
constexpr int kRefused = 1;
constexpr int kGraceMs = 5'000;
constexpr int kLookMs = 250;

// Gone with everything in it at the end; where that fails it is a temporary folder like others.
class PrivateFolder {
 public:
  static Result<std::unique_ptr<PrivateFolder>> make(const std::string& prefix) {
    HF_TRY(std::string path, os::make_temporary_folder(std::filesystem::temp_directory_path().string(), prefix));
    return std::unique_ptr<PrivateFolder>(new PrivateFolder(std::move(path)));
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

bool was_own_divert(const Json& released) {
  for (const Json& seen : released.value("observed", Json::array())) {
    if (text_member(seen, "what") == "own_write_diverted") return true;
  }
  return false;
}

// Says what the release found; whether it makes a program that ended well fail.
bool report_release(const Holding::Released& released, Output& output) {
  bool failed = false;
  if (released.refusal) {
    output.diagnostic("holdfast: the lease was not released: " + human_refusal(*released.refusal));
    failed = true;
  }
  for (const Json& document : released.documents) {
    const std::string scope = member(document, "released");
    if (was_own_divert(document)) {
      output.diagnostic("holdfast: the program wrote " + scope +
                        " in place: the guard diverted its bytes, which are in quarantine.\n"
                        "          A program under `hold` writes through `holdfast write` or `edit`; --no-guard takes\n"
                        "          the lease alone.\n");
      failed = true;
    }
    if (document.value("content_mismatch", Json()) == Json(true)) {
      output.diagnostic("holdfast: " + scope + " holds bytes that no gated write left; they are kept as " +
                        member(document, "quarantine_id") + "\n");
    }
  }
  return failed;
}

void report_enforcement(const Json& answer, const Json& arguments, Output& output) {
  if (arguments.value("no_guard", Json()) == Json(true)) return;
  for (const Json& record : answer.value("leases", Json::array())) {
    const Json os_lock = record.value("os_lock", Json::object());
    if (text_member(record, "namespace") != "file" || os_lock.value("enforced", Json()) == Json(true)) continue;
    output.diagnostic("holdfast: " + display_scope(record) +
                      " is leased, not guarded: " + words_of(text_member(os_lock, "reason")) + "\n");
  }
}

Refusal cannot_confine(const std::string& scope, const std::string& why) {
  return Refusal(Code::enforcement_insufficient, "enforcement_insufficient: `run` on " + scope + ": " + why,
                 Json{{"scope", scope}});
}

// What the program may write: the leased folders whole, and leased files where no guard would divert it.
Result<os::Confinement> confinement_of(const Json& leases, bool unguarded, const std::string& root,
                                       const Surroundings& surroundings, const std::string& private_folder) {
  HF_TRY(const auto engine, open_observer(root, surroundings));
  std::vector<os::Handle> folders;
  std::vector<os::Handle> files;
  for (const Json& record : leases) {
    if (text_member(record, "namespace") != "file") continue;
    const std::string scope = display_scope(record);
    HF_TRY(Engine::Place place, engine->open_place("file://" + text_member(record, "resource_id")));
    if (place.is_workspace) {
      return cannot_confine(scope, "the whole workspace holds .squad, which no program may write; lease folders in it");
    }
    if (place.kind == "none") return cannot_confine(scope, "it does not exist; make the folder first");
    if (place.kind == "folder" && place.object) {
      folders.push_back(std::move(*place.object));
    } else if (unguarded && place.kind == "file" && place.object) {
      files.push_back(std::move(*place.object));
    } else {
      return cannot_confine(scope,
                            "the guard diverts every writer of a leased file, this program too; a rung that admits one "
                            "writer is not in this release. Lease its folder, or use --no-guard, or `hold` and "
                            "`holdfast write`");
    }
  }
  HF_TRY(os::Handle own, os::open_absolute_folder(private_folder));
  folders.push_back(std::move(own));
  return os::Confinement::prepare(folders, files);
}

struct Running {
  int status = 0;
  bool lost = false;
};

// Until it ends by itself, or its lease is lost and it is ended.
Running wait_for(os::CommandProcess& command, Holding& holding, Output& output) {
  for (;;) {
    // Looked at here as well: the renewing thread may be waiting for a server that answers nobody.
    if (const auto status = command.wait(kLookMs)) return {*status, holding.lost().has_value()};
    if (!holding.lost_by_now()) continue;
    const auto lost = holding.lost();
    output.diagnostic("holdfast: the lease is lost, the program is ended: " + *lost + "\n");
    (void)command.terminate(kGraceMs);
    for (const std::int64_t pid : command.survivors()) {
      output.diagnostic("holdfast: process " + std::to_string(pid) + " could not be ended\n");
    }
    return {kLeaseLost, true};
  }
}

int run_held(const Invocation& invocation, Json request, const std::string& root, const Surroundings& surroundings,
             Output& output) {
  const bool confined = invocation.command->name == "run";
  if (confined) request["arguments"]["confined"] = true;
  auto keys_folder = PrivateFolder::make("holdfast-hold");
  if (!keys_folder.ok()) return output.refuse(keys_folder.refusal());
  if (confined) {
    if (auto possible = os::Confinement::prepare({}, {}); !possible.ok()) return output.refuse(possible.refusal());
  }
  Holding holding(root, surroundings, output);
  const auto acquired = holding.acquire(request);
  if (!acquired.ok()) return output.refuse(acquired.refusal());
  const auto give_up = [&](const Refusal& why) {
    (void)holding.release();
    return output.refuse(why);
  };
  report_enforcement(*acquired, request["arguments"], output);
  if (auto kept = holding.keep_lease_file((*keys_folder)->path() + "/lease.json"); !kept.ok()) {
    return give_up(kept.refusal());
  }
  os::CommandOptions options;
  options.environment = holding.environment();
  options.environment.emplace_back("HOLDFAST_WORKSPACE", root);
  std::unique_ptr<PrivateFolder> scratch;
  std::optional<os::Confinement> confinement;
  if (confined) {
    auto made = PrivateFolder::make("holdfast-run");
    if (!made.ok()) return give_up(made.refusal());
    scratch = std::move(*made);
    auto prepared = confinement_of(acquired->at("leases"), request["arguments"].value("no_guard", Json()) == Json(true),
                                   root, surroundings, scratch->path());
    if (!prepared.ok()) return give_up(prepared.refusal());
    confinement = std::move(*prepared);
    options.confinement = &*confinement;
    options.whole_tree = true;
    for (const char* name : {"TMPDIR", "TMP", "TEMP"}) options.environment.emplace_back(name, scratch->path());
  }
  // After a stop (Ctrl-Z) the lease may have gone: then the program does not go on.
  options.may_continue = [&holding] { return !holding.lost_by_now(); };
  options.spares = [&holding](std::int64_t pid) { return holding.started_server(pid); };
  auto command = os::CommandProcess::start(invocation.program, options);
  if (!command.ok()) return give_up(command.refusal());
  if (auto bound = holding.bind((*command)->identity()); !bound.ok()) return give_up(bound.refusal());
  if (auto renewing = holding.start_renewing([&command] { (*command)->interrupt(); }); !renewing.ok()) {
    return give_up(renewing.refusal());
  }
  if (auto begun = (*command)->release_gate(); !begun.ok()) return give_up(begun.refusal());
  const Running ended = wait_for(**command, holding, output);
  if (ended.lost) {
    (void)holding.release();
    return kLeaseLost;
  }
  const bool failed = report_release(holding.release(), output);
  return ended.status == 0 && failed ? kRefused : ended.status;
}

int run_under_tenancy(const Invocation& invocation, Json request, const std::string& root,
                      const Surroundings& surroundings, Output& output) {
  Json& arguments = request["arguments"];
  arguments["program"] = Json::array();
  for (const std::string& word : invocation.program) arguments["program"].push_back(printable(word));
  const Sending sending{.surroundings = surroundings, .root = root, .direct = invocation.direct};
  const auto begun = send(request, sending);
  if (!begun.ok()) return output.refuse(begun.refusal());
  const Json& command = begun->at("command");
  os::CommandOptions options;
  options.environment = {{"HOLDFAST_COMMAND", dump_ascii(command)},
                         {"HOLDFAST_SCOPE", text_member(command, "resource")},
                         {"HOLDFAST_OWNER", text_member(command, "owner")},
                         {"HOLDFAST_TASK", text_member(command, "task_id")},
                         {"HOLDFAST_GENERATION", text_member(command, "generation")},
                         {"HOLDFAST_STARTED_AT", text_member(arguments, "started_at")},
                         {"HOLDFAST_OPERATION_ID", text_member(command, "operation_id")},
                         {"HOLDFAST_WORKSPACE", root}};
  const auto report_end = [&](const Json& exit_status) {
    Json end = {{"verb", "command_end"}, {"arguments", arguments}};
    end["arguments"]["operation_id"] = command["operation_id"];
    end["arguments"]["issued"] = begun->value("evidence", Json());
    end["arguments"]["exit_status"] = exit_status;
    return send(end, sending);
  };
  auto process = os::CommandProcess::start(invocation.program, options);
  const auto running = process.ok() ? (*process)->release_gate() : Result<void>(process.refusal());
  if (!running.ok()) {
    (void)report_end(nullptr);  // nothing ran, and nothing of it is out
    return output.refuse(running.refusal());
  }
  std::optional<int> status;
  while (!status) status = (*process)->wait(60'000);
  const auto ended = report_end(*status);
  if (!ended.ok()) {
    output.diagnostic("holdfast: how the program ended could not be recorded: " + human_refusal(ended.refusal()));
    return *status;
  }
  if (ended->value("current", Json()) == Json(true)) return *status;
  output.diagnostic("holdfast: the tenancy ended while the program ran: " + member(*ended, "reason") + "\n");
  return kLeaseLost;
}

}  // namespace

int run_program(const Invocation& invocation, const Json& request, const std::string& root,
                const Surroundings& surroundings, Output& output) {
  if (invocation.command->name == "exec") return run_under_tenancy(invocation, request, root, surroundings, output);
  if (invocation.direct) {
    return output.refuse(usage_refusal("a lease that a program is bound to needs a server", invocation.command));
  }
  return run_held(invocation, request, root, surroundings, output);
}

}  // namespace holdfast::cli
