#include "surfaces/cli/challenge_ground.h"

#include <algorithm>
#include <sstream>

#include "base/json.h"
#include "receivers/postgres/scratch_rows.h"
#include "receivers/sqlite/scratch_rows.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

constexpr int kReceiveLimitMs = 60'000;
constexpr std::size_t kKindColumns = 9;
// What a command receiver runs: that it ran, and for which command, stands in a file.
constexpr const char* kProgram = R"(echo "$HOLDFAST_OPERATION_ID" >> "$1")";

// "A -> sqlite    …": whose command, and to which receiver.
std::string headed(const Sent& sent, const std::string& text) {
  std::string kind = sent.target->kind;
  kind.resize(std::max(kKindColumns, kind.size() + 1), ' ');
  return sent.operation_id.substr(0, sent.operation_id.find('-')) + " -> " + kind + text;
}

bool holds(const Json& list, const std::string& text) {
  return std::any_of(list.begin(), list.end(), [&](const Json& one) { return one == text; });
}

// Whether the state tells of the command's effect: the bytes, the row and its operation, the program's run.
bool has_effect(const Sent& sent, const Json& state) {
  if (sent.target->kind == "file") return text_member(state, "bytes") == sent.content;
  if (!holds(state["operations"], sent.operation_id)) return false;
  if (sent.target->kind == "command") return holds(state["runs"], sent.operation_id);
  return std::any_of(state["rows"].begin(), state["rows"].end(), [&](const Json& row) {
    return text_member(row, "id") == std::to_string(receivers::kScratchRow) &&
           text_member(row, "state") == sent.content;
  });
}

// A first outcome asked for again may say more, but nothing else.
bool repeats(const Json& first, const Json& again) {
  if (!first.is_object() || !again.is_object()) return false;
  return std::all_of(first.items().begin(), first.items().end(), [&](const auto& member) {
    return member.key() == "evidence" || again.value(member.key(), Json()) == member.value();
  });
}

std::string words_of(const Answer& answer) {
  if (answer.code() == "receiver_high_water_missing") {
    const Json mark = answer.details().value("receiver_mark", Json());
    return answer.code() + ": mark " + (mark.is_string() ? mark.get<std::string>() : "none") + ", workspace's copy " +
           text_member(answer.details(), "workspace_mark");
  }
  if (!answer.ok()) return answer.message();
  return text_member(answer.document, "decision") + ", generation " + text_member(answer.document, "generation");
}

std::string evidence_of(const Answer& answer) {
  return text_member(answer.ok() ? answer.document : answer.document.value("error", Json::object()), "evidence");
}

// As the chain has it, with what it was made from; null where no event of that id is there.
Json decision_in(const std::vector<Json>& events, const std::string& id) {
  for (const Json& event : events) {
    if (id.empty() || text_member(event, "id") != id) continue;
    const Json facts = event.value("facts", Json::object());
    return Json{{"decision", facts.value("decision", Json())},
                {"inputs", facts.value("inputs", Json())},
                {"receiver", facts.value("receiver", Json())},
                {"command", facts.value("command", Json())},
                {"at", event.value("at", Json())},
                {"evidence", id}};
  }
  return nullptr;
}

}  // namespace

Result<std::vector<Answer>> answers_of(const std::string& printed) {
  std::vector<Answer> answers;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    HF_TRY(Answer answer, answer_of_line(line, 0));
    answer.status = answer.document.contains("error") ? 1 : 0;
    answers.push_back(std::move(answer));
  }
  return answers;
}

Result<void> Ground::prepare() {
  targets_.push_back({.kind = "file", .scope = kFileScope});
  HF_TRY(auto rows, receivers::make_scratch_sqlite(scratch_.aside("rows.sqlite")));
  targets_.push_back({"sqlite", "session://challenge/sqlite", std::move(rows)});
  targets_.push_back(
      {"command", "session://challenge/command", receivers::scratch_command_state(scratch_.aside("jobs.sqlite"))});
  if (has_postgres()) {
    HF_TRY(auto served, receivers::make_scratch_postgres(postgres_));
    targets_.push_back({"postgres", "session://challenge/postgres", std::move(served)});
  }
  for (const Target& target : targets_) {
    if (target.state) HF_CHECK(add(target));
  }
  return {};
}

Result<void> Ground::add(const Target& target) {
  const Json config = target.state->config();
  std::vector<std::string> words = {"receiver", "add", target.kind, "--kind", target.kind, "--resource", target.scope};
  for (const auto& [option, member] : {std::pair{"--state", "state"},
                                       {"--database", "database"},
                                       {"--database", "connection"},
                                       {"--table", "table"},
                                       {"--version-column", "version_column"}}) {
    if (config.contains(member)) words.insert(words.end(), {option, text_member(config, member)});
  }
  for (const Json& column : config.value("key_columns", Json::array())) {
    words.insert(words.end(), {"--key", column.get<std::string>()});
  }
  HF_TRY(const Answer added, scratch_.ask(words));
  if (added.ok()) return {};
  return Refusal::from_json(added.document);
}

std::string Ground::names() const {
  std::string text;
  for (const Target& target : targets_) text += (text.empty() ? "" : ", ") + target.kind;
  return text;
}

std::vector<std::string> Ground::scopes() const {
  std::vector<std::string> scopes;
  for (const Target& target : targets_) scopes.push_back(target.scope);
  return scopes;
}

void Ground::say_what_stays_unknown() const {
  if (!has_postgres()) report_.stays_unknown("a PostgreSQL row: it was not shown, no --postgres CONNINFO was given");
  report_.stays_unknown("what a program does after it was started: the fence stands before it, not inside of it");
  report_.stays_unknown("writers that reach a database or start a program without its receiver");
}

Result<Json> Ground::acquire_all(const std::string& owner, const std::string& lease_file, const std::string& ttl) {
  std::vector<std::string> words = {"acquire"};
  for (const Target& target : targets_) words.push_back(target.scope);
  words.insert(words.end(), {"--owner", owner, "--task", "renewal", "--ttl", ttl});
  HF_TRY(const Answer answer, scratch_.ask(words));
  if (!answer.ok()) return Refusal::from_json(answer.document);
  HF_CHECK(Scratch::put(lease_file, answer.document.dump()));
  return answer.document;
}

Result<void> Ground::release_all(const std::string& lease_file) {
  for (const Target& target : targets_) {
    HF_TRY(const Answer answer, scratch_.ask({"release", target.scope, "--lease", lease_file}));
    if (!answer.ok()) return Refusal::from_json(answer.document);
  }
  return {};
}

Result<Sent> Ground::issue_one(const std::string& workspace, const Target& target, const std::string& lease_file,
                               const std::string& operation_id, int planned_on) {
  Sent sent{.target = &target, .operation_id = operation_id, .content = "by " + operation_id, .line = {}};
  std::vector<std::string> words = {"issue", target.scope, "--lease", lease_file, "--operation-id", operation_id};
  if (target.kind == "sqlite" || target.kind == "postgres") {
    words.insert(words.end(), {"--key", "id=integer:" + std::to_string(receivers::kScratchRow), "--set",
                               "state=text:" + sent.content, "--precondition", std::to_string(planned_on)});
  } else {
    if (target.kind == "file") sent.content = "{\"renewed_by\":\"" + operation_id + "\"}\n";
    const std::string from = scratch_.aside("payload-" + operation_id);
    HF_CHECK(Scratch::put(from, sent.content));
    words.insert(words.end(), {"--from", from});
  }
  HF_TRY(const Answer answer, scratch_.ask_in(workspace, words));
  if (!answer.ok()) return Refusal::from_json(answer.document);
  sent.line = dump_ascii(answer.document);
  return sent;
}

Result<std::vector<Sent>> Ground::issue(const std::string& workspace, const std::string& who,
                                        const std::string& lease_file, const std::string& number, int planned_on) {
  std::vector<Sent> all;
  for (const Target& target : targets_) {
    HF_TRY(Sent sent, issue_one(workspace, target, lease_file, who + "-" + target.kind + "-" + number, planned_on));
    all.push_back(std::move(sent));
  }
  return all;
}

std::vector<std::string> Ground::receive_words(const std::string& workspace) const {
  return {scratch_.program(),    "--workspace", workspace, "--json", "receive", "--", "/bin/sh", "-c", kProgram, "sh",
          scratch_.aside("runs")};
}

Result<std::vector<Answer>> Ground::deliver(const std::string& workspace, const std::vector<Sent>& sent) {
  const auto words = receive_words(workspace);
  HF_TRY(const auto worker, scratch_.start(words));
  for (const Sent& one : sent) HF_CHECK(worker->say(one.line + "\n"));
  worker->close_input();
  const int status = worker->wait(kReceiveLimitMs);
  scratch_.note(words, *worker, status);
  return answers_of(worker->output());
}

Result<Json> Ground::look() const {
  Json all = Json::object();
  for (const Target& target : targets_) {
    if (target.kind == "file") {
      all["file"]["bytes"] = Scratch::bytes_at(scratch_.in(kFile)).value_or("(gone)");
      continue;
    }
    HF_TRY(all[target.kind], target.state->look());
    if (target.kind != "command") continue;
    all["command"]["runs"] = Json::array();
    std::istringstream runs(Scratch::bytes_at(scratch_.aside("runs")).value_or(""));
    for (std::string run; std::getline(runs, run);) all["command"]["runs"].push_back(run);
  }
  return all;
}

Result<Shown> Ground::deliver_and_judge(const std::string& workspace, const std::vector<Sent>& sent,
                                        const std::string& expected) {
  HF_TRY(const Json before, look());
  HF_TRY(const auto answers, deliver(workspace, sent));
  HF_TRY(const Json after, look());
  return judge(workspace, sent, answers, before, after, expected);
}

Shown Ground::judge(const std::string& workspace, const std::vector<Sent>& sent, const std::vector<Answer>& answers,
                    const Json& before, const Json& after, const std::string& expected) {
  const bool wants_effect = expected == "accepted" || expected == "repeated";
  Shown shown{.passed = answers.size() == sent.size(), .outcome = wants_effect ? expected : "refused"};
  const std::vector<Json> events = Scratch::events_in(workspace, 0);
  Json said = Json::object();
  for (std::size_t at = 0; at < sent.size() && at < answers.size(); ++at) {
    const Target& target = *sent[at].target;
    const Answer& answer = answers[at];
    const std::string got = answer.ok() ? text_member(answer.document, "decision") : answer.code();
    const bool unchanged = before[target.kind] == after[target.kind];
    const Json decision = decision_in(events, evidence_of(answer));
    bool right = got == expected && !decision.is_null() && decision["decision"] == got;
    const Json outcome = answer.document.value("outcome", Json());
    if (got == "accepted") {
      right = right && !unchanged && has_effect(sent[at], after[target.kind]);
      first_outcomes_[sent[at].operation_id] = outcome;
    } else {
      right = right && unchanged;
      if (got == "repeated") right = right && repeats(first_outcomes_[sent[at].operation_id], outcome);
    }
    std::string line = (got == "accepted" ? "" : unchanged ? "unchanged, " : "CHANGED, ") + words_of(answer);
    if (!right) line += got == expected ? " - NOT SHOWN" : " - expected " + expected;
    shown.lines.push_back(headed(sent[at], line));
    shown.passed = shown.passed && right;
    said[sent[at].operation_id] = answer.document;
    if (!decision.is_null()) report_.decided(decision);
  }
  if (!shown.passed) shown.outcome = "not shown";
  shown.facts = {{"workspace", printable(workspace)}, {"answers", said}, {"before", before}, {"after", after}};
  return shown;
}

}  // namespace holdfast::cli::challenge
