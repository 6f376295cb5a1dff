#include "surfaces/cli/command_list.h"

#include "surfaces/mcp/fixtures/fixtures.h"

namespace holdfast::cli {
namespace {

// Written as functions, so that the table reads as what a command takes.
OptionSpec text(std::string_view name, std::string_view values, std::string_view argument, std::string_view summary) {
  return {.name = name, .values = values, .summary = summary, .argument = argument};
}
OptionSpec flag(std::string_view name, std::string_view argument, std::string_view summary) {
  return {.name = name, .values = "", .summary = summary, .argument = argument};
}
OptionSpec own(std::string_view name, std::string_view values, std::string_view summary) {
  return {.name = name, .values = values, .summary = summary, .argument = ""};
}
OptionSpec needed(OptionSpec option) {
  option.required = true;
  return option;
}
OptionSpec unless_lease(OptionSpec option) {
  option.required = true;
  option.unless = "--lease";
  return option;
}
OptionSpec one_of(OptionSpec option, std::string_view choices) {
  option.choices = choices;
  return option;
}
OptionSpec key(std::string_view name, std::string_view values, std::string_view summary) {
  OptionSpec option = own(name, values, summary);
  option.is_key = true;
  return option;
}
OptionSpec many(OptionSpec option) {
  option.repeatable = true;
  return option;
}

std::vector<OptionSpec> with_keys(std::vector<OptionSpec> more = {}) {
  std::vector<OptionSpec> all = {key("--owner", "OWNER", "who holds the lease"),
                                 key("--task", "TASK", "the task that it is held for"),
                                 key("--generation", "NUMBER", "the tenancy's generation"),
                                 key("--started-at", "TIME", "the tenancy's started_at, as it was printed"),
                                 key("--lease", "FILE", "the keys from what `holdfast --json acquire` printed")};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

OptionSpec reason() { return needed(text("--reason", "TEXT", "reason", "why; kept in the evidence")); }
OptionSpec ttl() { return text("--ttl", "TIME", "ttl", "15m, 90s, or a number of minutes; at most 15 minutes"); }
OptionSpec no_guard() {
  return flag("--no-guard", "no_guard", "the lease alone, without the kernel's write exclusion");
}
OptionSpec require() {
  return one_of(text("--require", "RUNG", "require", "refuse a weaker guard than this"),
                "bpf_lsm|immutable_flag|kernel_lease");
}
OptionSpec wait() {
  return text("--wait", "SEC", "wait_seconds", "wait so long for your turn instead of being refused at once");
}
OptionSpec operation_id() {
  return text("--operation-id", "ID", "operation_id", "names the operation: the same id is never applied twice");
}
OptionSpec allow_hard_links() {
  return flag("--allow-hard-links", "allow_hard_links", "replace this name of a file that has several");
}

}  // namespace

std::vector<Command> lease_commands() {
  return {
      {.name = "init",
       .verb = "init",
       .summary = "make the current folder, or --workspace, a workspace",
       .positional = "",
       .options = {flag("--adopt", "adopt", "this .squad was moved here: go on with its identity"),
                   flag("--new-id", "new_id", "this .squad is a copy: give it an identity of its own"),
                   text("--anchor", "FILE", "anchor", "keep the high water in this file on another volume, too"),
                   text("--reason", "TEXT", "reason", "why; --adopt and --new-id need it")},
       .examples = {"holdfast init", "holdfast --workspace /srv/project init"},
       .mutating = true},
      {.name = "scope",
       .verb = "scope",
       .summary = "show what a scope is called, canonically",
       .positional = "SCOPE",
       .options = {},
       .examples = {"holdfast scope src/a.txt", "holdfast --json scope session://build"}},
      {.name = "acquire",
       .verb = "acquire",
       .summary = "take a lease on one or several scopes: all or none",
       .positional = "SCOPE...",
       .options = {unless_lease(text("--owner", "OWNER", "owner", "who holds the lease")),
                   unless_lease(text("--task", "TASK", "task", "the task that it is held for")), ttl(),
                   flag("--fresh", "fresh", "a new generation even where you hold it already"), no_guard(), require(),
                   wait(), text("--reason", "TEXT", "reason", "why this supersedes the tenancy before"),
                   text("--family", "NAME", "family", "the contract's operation family"),
                   text("--consequence", "NAME", "consequence", "the contract's consequence class"),
                   own("--lease", "FILE", "your keys of a tenancy whose server died")},
       .examples = {"holdfast acquire a.txt --owner me --task t-1 --ttl 10m",
                    "holdfast acquire a.txt b.txt --owner me --task t-1 --wait 60",
                    "holdfast --json acquire src docs --owner me --task t-1 > lease.json"},
       .mutating = true},
      {.name = "heartbeat",
       .verb = "heartbeat",
       .summary = "renew a lease",
       .positional = "SCOPE",
       .options = with_keys({ttl()}),
       .examples = {"holdfast heartbeat a.txt --lease lease.json"},
       .mutating = true,
       .keys = Keys::required},
      {.name = "release",
       .verb = "release",
       .summary = "end a lease; what no gated write left is kept in quarantine",
       .positional = "SCOPE",
       .options = with_keys({flag("--force", "force", "end a lease of somebody else, where its owner allowed it")}),
       .examples = {"holdfast release a.txt --lease lease.json", "holdfast release a.txt --force --owner me"},
       .mutating = true,
       .keys = Keys::required},
      {.name = "leases",
       .verb = "leases",
       .summary = "list every lease and who holds it",
       .positional = "",
       .options = {},
       .examples = {"holdfast leases"}},
      {.name = "status",
       .verb = "status",
       .summary = "show the workspace at a glance",
       .positional = "",
       .options = {},
       .examples = {"holdfast status"}},
  };
}

std::vector<Command> holding_commands() {
  const std::vector<OptionSpec> held = {needed(text("--owner", "OWNER", "owner", "who holds the lease")),
                                        needed(text("--task", "TASK", "task", "the task that it is held for")),
                                        ttl(),
                                        wait(),
                                        no_guard(),
                                        require(),
                                        text("--reason", "TEXT", "reason", "why this supersedes the tenancy before")};
  return {
      {.name = "hold",
       .verb = "acquire",
       .summary = "run a program under a lease, renewed while it runs and released after it",
       .positional = "SCOPE...",
       .options = held,
       .examples = {"holdfast hold state.json --owner me --task t-1 -- ./job.sh",
                    "holdfast hold a.txt b.txt --owner me --task t-1 --wait 300 -- make release",
                    "holdfast hold log.txt --owner me --task t-1 --no-guard -- ./append.sh"},
       .mutating = true,
       .runs_program = true},
      {.name = "run",
       .verb = "acquire",
       .summary = "the same, with the program confined: it can write only below the folders that it leases",
       .positional = "SCOPE...",
       .options = held,
       .examples = {"holdfast run build/ --owner me --task t-1 -- make",
                    "holdfast run notes.txt --no-guard --owner me --task t-1 -- ./append.sh"},
       .mutating = true,
       .runs_program = true},
      {.name = "exec",
       .verb = "command_begin",
       .summary = "run a program only under a current tenancy, with the command in its environment",
       .positional = "SCOPE",
       .options = with_keys({operation_id()}),
       .examples = {"holdfast exec session://deploy --lease lease.json -- ./deploy.sh"},
       .mutating = true,
       .keys = Keys::required,
       .runs_program = true},
  };
}

std::vector<Command> write_commands() {
  return {
      {.name = "write",
       .verb = "write",
       .summary = "replace a leased file, guarded and verified",
       .positional = "SCOPE",
       .options = with_keys({needed(own("--from", "FILE|-", "the new bytes; - is standard input")),
                             text("--preimage", "SHA256|absent", "preimage_sha256", "what the file has to be before"),
                             operation_id(), allow_hard_links()}),
       .examples = {"holdfast write a.txt --lease lease.json --from new.txt",
                    "make-it | holdfast write a.txt --lease lease.json --from -"},
       .mutating = true,
       .keys = Keys::required},
      {.name = "edit",
       .verb = "edit",
       .summary = "replace texts that are found exactly once, guarded and verified",
       .positional = "SCOPE",
       .options = with_keys({needed(many(own("--replace", "OLD NEW", "these bytes by those; may be repeated"))),
                             operation_id(), allow_hard_links()}),
       .examples = {"holdfast edit a.txt --lease lease.json --replace 'port = 1' 'port = 2'"},
       .mutating = true,
       .keys = Keys::required},
      {.name = "read",
       .verb = "read",
       .summary = "print a file's bytes",
       .positional = "SCOPE",
       .options = {},
       .examples = {"holdfast read a.txt > copy", "holdfast --json read a.txt"}},
      {.name = "recover",
       .verb = "recover",
       .summary = "settle what a crash left, or say what waits for a person",
       .positional = "",
       .options = {},
       .examples = {"holdfast recover"},
       .mutating = true},
  };
}

std::vector<Command> reconcile_commands() {
  return {
      {.name = "reconcile list",
       .verb = "reconcile_list",
       .summary = "list the faults that wait for a decision",
       .positional = "",
       .options = {},
       .examples = {"holdfast reconcile list"}},
      {.name = "reconcile show",
       .verb = "reconcile_show",
       .summary = "show one fault",
       .positional = "ID",
       .options = {},
       .examples = {"holdfast reconcile show r-0123456789abcdef"}},
      {.name = "reconcile resolve",
       .verb = "reconcile_resolve",
       .summary = "decide a fault, or that set-aside bytes (q-...) are done with",
       .positional = "ID",
       .options = with_keys({own("--accept", "", "the bytes that are there stay"),
                             own("--restore", "", "put the verified preimage back: a guarded write, needs KEYS"),
                             text("--reason", "TEXT", "reason", "why; kept in the evidence")}),
       .examples = {"holdfast reconcile resolve r-0123456789abcdef --accept",
                    "holdfast reconcile resolve r-0123456789abcdef --restore --lease lease.json",
                    "holdfast reconcile resolve q-0123456789abcdef --accept --reason 'looked at'"},
       .mutating = true,
       .keys = Keys::optional},
      {.name = "vault prune",
       .verb = "vault_prune",
       .summary = "take away set-aside bytes that a person accepted; their digests stay",
       .positional = "",
       .options = {reason()},
       .examples = {"holdfast vault prune --reason 'the incident is closed'"},
       .mutating = true},
      {.name = "task set",
       .verb = "task_set",
       .summary = "name the sources that govern a task: it never writes them",
       .positional = "ID",
       .options = {many(own("--source", "SCOPE", "a governing source; none: nothing governs it")),
                   text("--reason", "TEXT", "reason", "why; kept in the evidence")},
       .examples = {"holdfast task set t-1 --source spec.md --source policies"},
       .mutating = true},
      {.name = "task show",
       .verb = "task_show",
       .summary = "show what governs a task",
       .positional = "ID",
       .options = {},
       .examples = {"holdfast task show t-1"}},
      {.name = "quarantine list",
       .verb = "quarantine_list",
       .summary = "list the bytes that were set aside",
       .positional = "",
       .options = {},
       .examples = {"holdfast quarantine list"}},
      {.name = "quarantine show",
       .verb = "quarantine_show",
       .summary = "show one entry",
       .positional = "ID",
       .options = {},
       .examples = {"holdfast quarantine show q-0123456789abcdef"}},
      {.name = "quarantine export",
       .verb = "quarantine_export",
       .summary = "copy an entry's bytes out; nothing goes",
       .positional = "ID",
       .options = {needed(own("--to", "PATH|-", "a new file; - is standard output"))},
       .examples = {"holdfast quarantine export q-0123456789abcdef --to kept.bin"}},
  };
}

std::vector<Command> operator_commands() {
  return {
      {.name = "generations show",
       .verb = "generations_show",
       .summary = "show the counters and their high water",
       .positional = "",
       .options = {},
       .examples = {"holdfast generations show"}},
      {.name = "generations verify",
       .verb = "generations_verify",
       .summary = "check marker, store and what is known",
       .positional = "",
       .options = {},
       .examples = {"holdfast generations verify"}},
      {.name = "generations repair",
       .verb = "generations_repair",
       .summary = "rebuild a lost or rolled back store above every number that is known",
       .positional = "",
       .options = {reason(), text("--floor", "NUMBER", "floor", "start above this number, too")},
       .examples = {"holdfast generations repair --reason 'restored from a snapshot' --floor 1200"},
       .mutating = true},
      {.name = "epoch show",
       .verb = "epoch_show",
       .summary = "show the control epoch and break-glass",
       .positional = "",
       .options = {},
       .examples = {"holdfast epoch show"}},
      {.name = "epoch advance",
       .verb = "epoch_advance",
       .summary = "revoke every lease at once",
       .positional = "",
       .options = {reason()},
       .examples = {"holdfast epoch advance --reason 'a stolen laptop'"},
       .mutating = true},
      {.name = "epoch engage",
       .verb = "epoch_engage",
       .summary = "break glass: nothing is acquired",
       .positional = "",
       .options = {reason()},
       .examples = {"holdfast epoch engage --reason 'an incident'"},
       .mutating = true},
      {.name = "epoch disengage",
       .verb = "epoch_disengage",
       .summary = "end break-glass",
       .positional = "",
       .options = {reason()},
       .examples = {"holdfast epoch disengage --reason 'it is over'"},
       .mutating = true},
  };
}

std::vector<Command> evidence_commands() {
  return {
      {.name = "receiver list",
       .verb = "receiver_list",
       .summary = "list the receivers and their marks",
       .positional = "",
       .options = {},
       .examples = {"holdfast receiver list"}},
      {.name = "evidence log",
       .verb = "evidence_log",
       .summary = "show what happened, oldest first",
       .positional = "",
       .options = {text("--scope", "SCOPE", "", "only events of this scope"),
                   text("--limit", "NUMBER", "", "only the last so many")},
       .examples = {"holdfast evidence log --limit 20", "holdfast evidence log --scope a.txt"}},
      {.name = "evidence show",
       .verb = "evidence_show",
       .summary = "show one event and what followed from it",
       .positional = "ID",
       .options = {},
       .examples = {"holdfast evidence show ev-0123456789abcdef"}},
      {.name = "evidence verify",
       .verb = "evidence_verify",
       .summary = "recompute the chain and name its first break; of a PACKAGE every decision, too",
       .positional = "[PACKAGE]",
       .options = {},
       .examples = {"holdfast evidence verify", "holdfast evidence verify /tmp/package"}},
      {.name = "evidence export",
       .verb = "evidence_export",
       .summary = "write the chain to a new folder, with its head",
       .positional = "",
       .options = {needed(own("--to", "DIR", "the folder to make"))},
       .examples = {"holdfast evidence export --to evidence-2026"}},
  };
}

namespace {

std::vector<OptionSpec> options_of_a_test_build() {
  if (mcp::kConformanceFixtures.empty()) return {};
  return {own(mcp::kConformanceFixtures, "", "what the official conformance suite asks for, too")};
}

}  // namespace

std::vector<Command> program_commands() {
  return {
      {.name = "doctor",
       .verb = "",
       .summary = "attack scratch files on this very file system, and say what the kernel stops",
       .positional = "",
       .options = {},
       .examples = {"holdfast doctor", "holdfast --workspace /srv/project --json doctor"}},
      {.name = "challenge",
       .verb = "",
       .summary = "play the stale-writer challenge with real processes on a scratch workspace",
       .positional = "[NAME]",
       .options = {own("--package", "DIR", "where the evidence package goes"),
                   own("--keep", "", "leave the scratch workspace in place")},
       .examples = {"holdfast challenge", "holdfast --json challenge t3 --package /tmp/package"}},
      {.name = "serve",
       .verb = "",
       .summary = "serve the workspace in the foreground; only a server guards files",
       .positional = "",
       .options = {own("--leave-when-idle", "SEC", "end after so long without leases and connections"),
                   own("--replace", "", "put this program in the place of the server that runs, in the background")},
       .examples = {"holdfast serve", "holdfast serve --replace"}},
      {.name = "adopt",
       .verb = "",
       .summary = "take over from the server that started this process",
       .positional = "NUMBER",
       .options = {},
       .examples = {},
       .hidden = true},
      {.name = "mcp",
       .verb = "",
       .summary = "speak MCP on standard input and output, for one client; starts a server where none runs",
       .positional = "",
       .options = {},
       .examples = {"holdfast mcp", "holdfast --workspace /srv/project mcp"},
       .hidden_options = options_of_a_test_build()},
      {.name = "stop",
       .verb = "stop",
       .summary = "end the server; leases stay, unenforced",
       .positional = "",
       .options = {},
       .examples = {"holdfast stop"},
       .mutating = true},
      {.name = "completions",
       .verb = "",
       .summary = "print completions for a shell",
       .positional = "SHELL",
       .options = {},
       .examples = {"holdfast completions bash > /etc/bash_completion.d/holdfast"}},
      {.name = "version",
       .verb = "",
       .summary = "print the version",
       .positional = "",
       .options = {},
       .examples = {"holdfast version"}},
      {.name = "docs",
       .verb = "",
       .summary = "print a generated document: cli or refusals",
       .positional = "NAME",
       .options = {},
       .examples = {},
       .hidden = true},
  };
}

std::vector<OptionSpec> options_of_every_command() {
  return {own("--workspace", "DIR", "the workspace; else the nearest folder above with a .squad"),
          own("--json", "", "exactly one JSON document on standard output"),
          own("--direct", "", "without a server; refused for changes while one lives"),
          own("--help", "", "help, on its own or for a verb")};
}

}  // namespace holdfast::cli
