// The rows about receivers, commands, acts, results and handoffs.
#include "surfaces/cli/command_list.h"
#include "surfaces/cli/option_forms.h"

namespace holdfast::cli {
using namespace option_forms;

namespace {

// The bytes of a command: as they are, or a change of a row in words.
std::vector<OptionSpec> payload_options() {
  return {
      own("--from", "FILE|-", "the exact bytes; - is standard input"),
      many(own("--key", "COLUMN=TYPE:VALUE", "of a row: a column of its key; TYPE is integer, text or blob (base64)")),
      many(own("--set", "COLUMN=TYPE:VALUE", "of a row: a new value; TYPE also real, or null without a value"))};
}

std::vector<OptionSpec> with_payload_alone(std::vector<OptionSpec> more) {
  std::vector<OptionSpec> all = payload_options();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<OptionSpec> with_payload(std::vector<OptionSpec> more) {
  return with_keys(with_payload_alone(std::move(more)));
}

OptionSpec shown_act() { return own("--act", "FILE", "the act as it was shown to you: any other is refused"); }

}  // namespace

std::vector<Command> receiver_commands() {
  return {
      {.name = "receiver add",
       .verb = "receiver_add",
       .summary = "register a receiver: where the effects of commands happen, and are fenced",
       .positional = "NAME",
       .options = {one_of(needed(text("--kind", "KIND", "kind", "what it is")), "sqlite|postgres|command"),
                   text("--resource", "SCOPE", "resource", "what is leased for it; else session://KIND.records/NAME"),
                   own("--database", "FILE|CONNECTION", "sqlite: the file; postgres: a libpq connection string"),
                   own("--table", "TABLE", "whose rows it changes"),
                   many(own("--key", "COLUMN", "a column of the rows' key; may be repeated")),
                   own("--version-column", "COLUMN", "the column that counts a row's versions"),
                   own("--state", "FILE", "command: where it keeps its mark and operations; else in .squad"),
                   text("--reason", "TEXT", "reason", "why; kept in the evidence")},
       .examples = {"holdfast receiver add accounts --kind sqlite --database app.db --table accounts --key id "
                    "--version-column version",
                    "holdfast receiver add orders --kind postgres --database 'service=shop' --table orders --key id "
                    "--version-column v",
                    "holdfast receiver add deploy --kind command --resource session://deploy"},
       .mutating = true},
      {.name = "receiver list",
       .verb = "receiver_list",
       .summary = "list the receivers and their marks",
       .positional = "",
       .options = {},
       .examples = {"holdfast receiver list"}},
      {.name = "receiver reseed",
       .verb = "receiver_reseed",
       .summary = "give a receiver that lost its mark a new one: the current tenancy's generation",
       .positional = "NAME",
       .options = {reason()},
       .examples = {"holdfast receiver reseed accounts --reason 'restored from Monday'"},
       .mutating = true},
      {.name = "receiver settle",
       .verb = "receiver_settle",
       .summary = "say what became of a program that was started and whose end nobody saw",
       .positional = "NAME",
       .options = {needed(text("--operation", "ID", "operation_id", "the command's operation id")),
                   flag("--ran", "ran", "it had its effect: it is never run again"),
                   flag("--not-run", "not_run", "it had none: the same command may run again"), reason()},
       .examples = {"holdfast receiver settle deploy --operation op-1 --ran --reason 'it is live'"},
       .mutating = true},
      {.name = "issue",
       .verb = "command_issue",
       .summary = "print a command under your lease, one line for a queue; `receive` takes it at the other end",
       .positional = "SCOPE",
       .options = with_payload({text("--precondition", "VERSION", "precondition", "what it was planned on"),
                                text("--family", "NAME", "family", "the operation family"), operation_id()}),
       .examples = {"holdfast issue session://deploy --lease lease.json --from job.json >> queue",
                    "holdfast issue session://sqlite.records/accounts --lease lease.json --key id=integer:7 --set "
                    "state=text:paid --precondition 3"},
       .mutating = true,
       .keys = Keys::required},
      {.name = "delegate",
       .verb = "",
       .summary = "print a child of the command that you were started with: it carries no more than its parent",
       .positional = "",
       .options = with_payload_alone({own("--parent", "FILE", "a command or an envelope; else HOLDFAST_COMMAND"),
                                      own("--resource", "SCOPE", "the parent's, in full, or one below it"),
                                      own("--precondition", "VERSION", "what it was planned on"),
                                      own("--operation-id", "ID", "the child's own; else a new one")}),
       .examples = {"holdfast exec session://deploy --lease lease.json -- sh -c 'holdfast delegate --from step.json >> "
                    "queue'"}},
      {.name = "receive",
       .verb = "deliver",
       .summary = "take commands from standard input, one a line, to their receivers; each answer is a line, too",
       .positional = "",
       .options = {},
       .examples = {"holdfast receive < queue", "tail -f queue | holdfast receive -- ./run-job.sh"},
       .mutating = true,
       .runs_program = true,
       .program_is_optional = true},
  };
}

std::vector<Command> act_commands() {
  return {
      {.name = "act prepare",
       .verb = "act_prepare",
       .summary = "bind exact bytes for a file or a row to your tenancy, for somebody to approve",
       .positional = "SCOPE",
       .options = with_payload(
           {text("--precondition", "VERSION", "precondition",
                 "what it is planned on: a row's version, a file's SHA-256 or `absent` (else what is there now)"),
            operation_id(), text("--reason", "TEXT", "reason", "why; kept in the evidence")}),
       .examples = {"holdfast act prepare a.txt --lease lease.json --from new.txt",
                    "holdfast act prepare session://sqlite.records/accounts --lease lease.json --key id=integer:7 "
                    "--set state=text:paid --precondition 3"},
       .mutating = true,
       .keys = Keys::required},
      {.name = "act approve",
       .verb = "act_approve",
       .summary = "approve a prepared act, once",
       .positional = "ID",
       .options = {shown_act(), text("--by", "WHO", "by", "who approves; a name, not a proof"),
                   text("--reason", "TEXT", "reason", "why; kept in the evidence")},
       .examples = {"holdfast act approve op-0123456789abcdef --by ada --reason 'read and right'"},
       .mutating = true},
      {.name = "act commit",
       .verb = "act_commit",
       .summary = "carry out an approved act, once, if nothing that it was bound to has changed",
       .positional = "ID",
       .options = with_keys({shown_act()}),
       .examples = {"holdfast act commit op-0123456789abcdef --lease lease.json"},
       .mutating = true,
       .keys = Keys::required},
      {.name = "act show",
       .verb = "act_show",
       .summary = "show an act: what it would change, under which tenancy, and who approved it",
       .positional = "ID",
       .options = {},
       .examples = {"holdfast --json act show op-0123456789abcdef > act.json"}},
      {.name = "act list",
       .verb = "act_list",
       .summary = "list the acts and how far they are",
       .positional = "",
       .options = {},
       .examples = {"holdfast act list"}},
      {.name = "result grant",
       .verb = "result_grant",
       .summary = "let another task receive what an operation led to",
       .positional = "ID",
       .options = {needed(text("--to-task", "TASK", "to_task", "the task that may receive it")), reason()},
       .examples = {"holdfast result grant op-0123456789abcdef --to-task t-2 --reason 'next stage'"},
       .mutating = true},
      {.name = "result get",
       .verb = "result_get",
       .summary = "receive a result that was granted to your task, under your own current lease",
       .positional = "ID",
       .options = with_keys({own("--scope", "SCOPE", "what you lease; --lease FILE with one lease says it, too")}),
       .examples = {"holdfast result get op-0123456789abcdef --lease lease.json"},
       .mutating = true,
       .keys = Keys::required},
  };
}

std::vector<Command> handoff_commands() {
  return {
      {.name = "handoff open",
       .verb = "handoff_open",
       .summary = "begin to hand a resource over: what is still out is listed, and nothing is called done early",
       .positional = "SCOPE",
       .options = {reason(),
                   text("--reconciliation-owner", "WHO", "reconciliation_owner", "who looks after what is unknown"),
                   text("--review-trigger", "TEXT", "review_trigger", "what makes somebody look again")},
       .examples = {"holdfast handoff open session://deploy --reason 'night shift'"},
       .mutating = true},
      {.name = "handoff status",
       .verb = "handoff_status",
       .summary = "show a handoff: who stopped, who is ready, and what stands in the way",
       .positional = "[SCOPE]",
       .options = {},
       .examples = {"holdfast handoff status", "holdfast handoff status session://deploy"},
       .mutating = true},
      {.name = "handoff close",
       .verb = "handoff_close",
       .summary = "end a handoff, if nothing old can alter the outcome any more",
       .positional = "SCOPE",
       .options = {reason(), many(own("--accept", "ID", "a command that you answer for; your reason is kept with it"))},
       .examples = {"holdfast handoff close session://deploy --reason 'all answered'"},
       .mutating = true},
  };
}

}  // namespace holdfast::cli
