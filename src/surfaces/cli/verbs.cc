#include "surfaces/cli/verbs.h"

#include <cstdlib>

#include "base/clock.h"
#include "base/json.h"
#include "evidence/package.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "surfaces/cli/bytes_verbs.h"
#include "surfaces/cli/challenge.h"
#include "surfaces/cli/content.h"
#include "surfaces/cli/delegate.h"
#include "surfaces/cli/doctor.h"
#include "surfaces/cli/documents.h"
#include "surfaces/cli/hold.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/receive.h"
#include "surfaces/cli/request.h"
#include "surfaces/cli/request_path.h"
#include "surfaces/cli/server_verbs.h"
#include "surfaces/mcp/bridge.h"
#include "surfaces/mcp/fixtures/fixtures.h"

namespace holdfast::cli {
namespace {

int answer_with(const std::string& verb, const Result<Json>& answer, Output& output) {
  if (!answer) return output.refuse(answer.refusal());
  output.end_progress();
  const int status = exit_status_of(verb, *answer);
  if (output.json()) return output.document(*answer, status);
  return output.text(human_answer(verb, *answer, SystemClock().now().wall_us), status);
}

// A text of the program's own: with --json it is one member of a document.
int say(const char* name, const std::string& text, Output& output) {
  return output.json() ? output.document(Json{{name, text}}) : output.text(text);
}

int run_init(const Invocation& invocation, const Surroundings& surroundings, Output& output) {
  const auto request = request_of(invocation, surroundings);
  if (!request) return output.refuse(request.refusal());
  const std::string root = invocation.workspace ? absolute_path(*invocation.workspace, surroundings.current_folder)
                                                : surroundings.current_folder;
  // What changes a workspace that is there goes past no server, which would keep what it read before.
  std::optional<DirectPass> pass;
  const bool changes = invocation.has("--adopt") || invocation.has("--new-id") || invocation.has("--anchor");
  if (const auto folder = os::open_workspace(root); changes && folder.ok()) {
    auto taken = DirectPass::take(folder->squad);
    if (!taken.ok()) return output.refuse(taken.refusal());
    pass.emplace(std::move(*taken));
  }
  return answer_with("init", Engine::initialise(root, (*request)["arguments"]), output);
}

int run_completions(const Invocation& invocation, Output& output) {
  const auto script = completions_for(invocation.positionals.front());
  if (script) return say("completions", *script, output);
  return output.refuse(usage_refusal("completions are for bash, zsh and fish", invocation.command));
}

int run_docs(const Invocation& invocation, Output& output) {
  const std::string& name = invocation.positionals.front();
  if (name == "cli") return say("document", cli_document(), output);
  if (name == "refusals") return say("document", refusals_document(), output);
  return output.refuse(usage_refusal("documents are cli and refusals", invocation.command));
}

int run_version(Output& output) {
  if (output.json()) return output.document(Json{{"version", HOLDFAST_VERSION}});
  return output.text("holdfast " HOLDFAST_VERSION "\n");
}

int run_mcp(const Invocation& invocation, const Surroundings& surroundings, Output& output) {
  const auto fixtures = invocation.has(mcp::kConformanceFixtures) ? mcp::conformance_fixtures() : nullptr;
  const auto bridged =
      mcp::run_bridge({.find_root = [&] { return workspace_root(invocation, surroundings); },
                       .current_folder = surroundings.current_folder,
                       .doctor = [](const std::string& root) { return examine(root, [] { return false; }); },
                       .extension = fixtures.get()});
  if (!bridged.ok()) return output.refuse(bridged.refusal());
  std::_Exit(0);  // its threads may still wait for the server, and nobody for them
}

int start_challenge(const Invocation& invocation, const Surroundings& surroundings, Output& output) {
  ChallengeOptions options;
  options.output = &output;
  options.current_folder = surroundings.current_folder;
  options.package = invocation.value("--package").value_or("");
  options.postgres = invocation.value("--postgres").value_or("");
  options.keep = invocation.has("--keep");
  return run_challenge(invocation.positionals.empty() ? "" : invocation.positionals.front(), options);
}

// The verbs that need no workspace; nullopt for the others.
std::optional<int> run_own(const Invocation& invocation, const Surroundings& surroundings, Output& output) {
  const std::string_view name = invocation.command->name;
  if (name == "init") return run_init(invocation, surroundings, output);
  if (name == "completions") return run_completions(invocation, output);
  if (name == "docs") return run_docs(invocation, output);
  if (name == "version") return run_version(output);
  if (name == "delegate") return run_delegate(invocation, surroundings, output);
  if (name == "mcp") return run_mcp(invocation, surroundings, output);
  if (name == "challenge") return start_challenge(invocation, surroundings, output);
  if (name == "evidence verify" && !invocation.positionals.empty()) {
    return answer_with(
        "evidence_verify",
        evidence::verify_package(absolute_path(invocation.positionals.front(), surroundings.current_folder)), output);
  }
  return std::nullopt;
}

int run_request(const Invocation& invocation, const Surroundings& surroundings, const std::string& root, Json request,
                Output& output) {
  Sending sending{.surroundings = surroundings,
                  .root = root,
                  .mutating = invocation.command->mutating,
                  .direct = invocation.direct};
  std::unique_ptr<StreamContent> content;
  if (invocation.command->verb == "write") {
    auto opened = StreamContent::open(*invocation.value("--from"));
    if (!opened) return output.refuse(opened.refusal());
    content = std::move(opened).value();
    sending.content = content.get();
    if (const auto& count = content->byte_count()) {
      request["arguments"]["byte_count"] = *count;
      sending.progress = output.progress("writing", *count);
    }
  }
  if (invocation.has("--wait")) sending.progress = output.waiting();
  return answer_with(std::string(invocation.command->verb), send(request, sending), output);
}

// A --lease file with several leases: the workspace tells which is on the verb's scope, whatever it is called there.
Surroundings with_canonical_scopes(const Surroundings& surroundings, const std::string& root) {
  Surroundings with = surroundings;
  with.canonical = [&surroundings, root](const std::string& scope) -> Result<Json> {
    HF_TRY(const auto engine, open_observer(root, surroundings));
    return engine->perform(scope_request("scope", scope, surroundings.current_folder), Caller{});
  };
  return with;
}

}  // namespace

int run_verb(const Invocation& invocation, const Surroundings& surroundings, Output& output) {
  if (invocation.help) {
    return say("help", invocation.topic.empty() ? general_help() : help_on(invocation.topic), output);
  }
  if (const auto status = run_own(invocation, surroundings, output)) return *status;
  const auto root = workspace_root(invocation, surroundings);
  // A command line that is wrong in itself is told so, with a workspace or without.
  const auto request = request_of(invocation, root ? with_canonical_scopes(surroundings, *root) : surroundings);
  if (!request) return output.refuse(request.refusal());
  if (!root) return output.refuse(root.refusal());
  const std::string_view name = invocation.command->name;
  if (name == "serve") return run_serve(invocation, *root, surroundings, output);
  if (name == "adopt") return run_adopt(invocation, *root, output);
  if (name == "doctor") return run_doctor(*root, output);
  if (name == "receive") return run_receive(invocation, *root, surroundings, output);
  if (invocation.command->runs_program) return run_program(invocation, *request, *root, surroundings, output);
  if (name == "stop") return answer_with("stop", stop_server(*root), output);
  if (name == "read") return run_read(*request, *root, surroundings, output);
  if (name == "quarantine export") return run_quarantine_export(invocation, *request, *root, surroundings, output);
  return run_request(invocation, surroundings, *root, *request, output);
}

}  // namespace holdfast::cli
