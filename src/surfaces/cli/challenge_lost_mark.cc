// t4: receivers that lost their mark: one is restored from a backup that was consistent when it was taken, one is
// restored without its marks; both stay closed until a person reseeds them. A file's mark is its tenancy, and the
// numbers come from the workspace's own store: these are lost, and rolled back.
#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

constexpr const char* kMissing = "receiver_high_water_missing";
constexpr const char* kStore = ".squad/generations.json";
constexpr const char* kRecords = ".squad/locks/write";

// The file's tenancy, as its record's bytes and their path; the record is the file receiver's mark.
struct FileRecord {
  std::string path;
  std::string bytes;
};

struct Loss {
  FileRecord record_of_a = {};
  std::string lease_of_a = {};
  std::vector<Sent> late_of_a = {};
};

std::vector<Sent> without_file(std::vector<Sent> sent) {
  std::erase_if(sent, [](const Sent& one) { return one.target->kind == "file"; });
  return sent;
}

std::vector<Sent> of_file(std::vector<Sent> sent) {
  std::erase_if(sent, [](const Sent& one) { return one.target->kind != "file"; });
  return sent;
}

Result<FileRecord> file_record(const Scratch& scratch) {
  std::error_code error;
  std::filesystem::directory_iterator entry(scratch.in(kRecords), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string bytes = Scratch::bytes_at(entry->path().string()).value_or("");
    const auto record = parse_json(bytes);
    if (record && text_member(*record, "resource_id") == std::string("project:/") + kFile) {
      return FileRecord{entry->path().string(), bytes};
    }
  }
  return Refusal(Code::os_failed, "the record of the file's tenancy is not there");
}

Result<Shown> a_acts_and_backup(Play& play, Loss& loss) {
  HF_CHECK(play.ground->acquire_all("worker-a", loss.lease_of_a, "15m"));
  HF_TRY(play.of_a, play.ground->issue(play.scratch.workspace(), "A", loss.lease_of_a, "1", 1));
  HF_TRY(loss.late_of_a, play.ground->issue(play.scratch.workspace(), "A", loss.lease_of_a, "late", 2));
  HF_TRY(Shown shown, play.ground->deliver_and_judge(play.scratch.workspace(), play.of_a, "accepted"));
  for (const Target& target : play.ground->targets()) {
    if (target.state) HF_CHECK(target.state->keep());
  }
  HF_CHECK(
      Scratch::put(play.scratch.aside("generations.kept"), Scratch::bytes_at(play.scratch.in(kStore)).value_or("")));
  HF_TRY(loss.record_of_a, file_record(play.scratch));
  shown.lines.push_back("a backup of each is taken now: rows, marks and operations");
  return shown;
}

Result<Shown> b_acts(Play& play, const Loss& loss) {
  HF_CHECK(play.ground->release_all(loss.lease_of_a));
  HF_CHECK(play.ground->acquire_all("worker-b", play.lease_of_b, "15m"));
  HF_TRY(play.of_b, play.ground->issue(play.scratch.workspace(), "B", play.lease_of_b, "1", 2));
  return play.ground->deliver_and_judge(play.scratch.workspace(), play.of_b, "accepted");
}

// The program's state loses its marks alone: not even the old ones are left.
Result<Shown> receivers_are_restored(Play& play) {
  HF_TRY(const Json before, play.ground->look());
  for (const Target& target : play.ground->targets()) {
    if (!target.state) continue;
    HF_CHECK(target.state->restore());
    if (target.kind == "command") HF_CHECK(target.state->lose_marks());
  }
  HF_TRY(const Json after, play.ground->look());
  Shown shown{.outcome = "restored", .facts = {{"before", before}, {"after", after}}};
  for (const Target& target : play.ground->targets()) {
    if (!target.state) continue;
    const Json mark = after[target.kind]["marks"].value(target.scope, Json());
    shown.passed = shown.passed && mark != before[target.kind]["marks"].value(target.scope, Json());
    shown.lines.push_back(target.kind + ": mark " + text_member(before[target.kind]["marks"], target.scope) + " -> " +
                          (mark.is_string() ? mark.get<std::string>() : "none"));
  }
  return shown;
}

Result<Shown> nobody_is_let_through(Play& play, const Loss& loss) {
  std::vector<Sent> both = without_file(play.of_b);
  for (const Sent& late : without_file(loss.late_of_a)) both.push_back(late);
  return play.ground->deliver_and_judge(play.scratch.workspace(), both, kMissing);
}

Result<Shown> operator_reseeds(Play& play) {
  Shown shown{.outcome = "reseeded"};
  for (const Target& target : play.ground->targets()) {
    if (!target.state) continue;
    HF_TRY(const Answer silent, play.scratch.ask({"receiver", "reseed", target.kind}));
    HF_TRY(const Answer seeded, play.scratch.ask({"receiver", "reseed", target.kind, "--reason",
                                                  "restored from a backup; the challenge looked at its rows"}));
    if (!seeded.ok()) return Refusal::from_json(seeded.document);
    shown.passed = shown.passed && !silent.ok();
    shown.facts[target.kind] = seeded.document;
    shown.lines.push_back(target.kind + ": mark " + text_member(seeded.document, "mark") +
                          (silent.ok() ? ", WITHOUT a reason too" : ", not without a reason"));
  }
  return shown;
}

// What B had done went with the restored state, so the very same commands have their effect again; a program's run did
// not go with it, and which of its commands ran is then a person's to say.
Result<Shown> b_acts_again(Play& play) {
  return play.ground->deliver_and_judge(play.scratch.workspace(), without_file(play.of_b), "accepted");
}

Result<Shown> a_is_stale(Play& play, const Loss& loss) {
  return play.ground->deliver_and_judge(play.scratch.workspace(), loss.late_of_a, "stale_lease_generation");
}

// Without its store, or with an older one, the workspace grants nothing; the tenancies that it has go on to fence.
Result<Shown> store_is_bad(Play& play, const Loss& loss, const std::string& code, const std::string& scope) {
  HF_TRY(const Answer refused, play.scratch.ask({"acquire", scope, "--owner", "worker-c", "--task", "other"}));
  HF_TRY(Shown shown,
         play.ground->deliver_and_judge(play.scratch.workspace(), of_file(loss.late_of_a), "stale_lease_generation"));
  HF_TRY(const Answer repaired, play.scratch.ask({"generations", "repair", "--reason", "the challenge spoiled it"}));
  if (!repaired.ok()) return Refusal::from_json(repaired.document);
  std::uint64_t highest = 0;
  for (const Json& event : play.scratch.events_since(0)) {
    highest = std::max(highest, exact_u64(event.value("high_water", Json())).value_or(0));
  }
  HF_TRY(const Answer granted, play.scratch.ask({"acquire", scope, "--owner", "worker-c", "--task", "other"}));
  if (!granted.ok()) return Refusal::from_json(granted.document);
  const Json leases = granted.document.value("leases", Json::array());
  const Json generation = leases.empty() ? Json() : leases.front().value("generation", Json());
  const std::uint64_t number = exact_u64(generation).value_or(0);
  shown.passed = shown.passed && refused.code() == code && number > highest;
  shown.lines.insert(shown.lines.begin(), "a new lease: " + (refused.ok() ? "GRANTED" : refused.code()));
  shown.lines.push_back("after generations repair: generation " + std::to_string(number) +
                        ", above every number known");
  shown.facts["refused"] = refused.document;
  shown.facts["repaired"] = repaired.document;
  shown.facts["granted"] = granted.document;
  return shown;
}

Result<Shown> store_is_lost(Play& play, const Loss& loss) {
  std::error_code error;
  std::filesystem::remove(play.scratch.in(kStore), error);
  return store_is_bad(play, loss, "generation_store_missing", "one.txt");
}

Result<Shown> store_is_rolled_back(Play& play, const Loss& loss) {
  HF_CHECK(
      Scratch::put(play.scratch.in(kStore), Scratch::bytes_at(play.scratch.aside("generations.kept")).value_or("")));
  return store_is_bad(play, loss, "generation_checkpoint_mismatch", "another.txt");
}

// A's record, from the backup, in the place of B's. Nobody holds by it, and B's own is gone: B has to acquire again.
Result<Shown> record_is_an_old_one(Play& play, const Loss& loss) {
  HF_CHECK(Scratch::put(loss.record_of_a.path, loss.record_of_a.bytes));
  HF_TRY(Shown shown,
         play.ground->deliver_and_judge(play.scratch.workspace(), of_file(loss.late_of_a), "stale_lease_generation"));
  HF_TRY(const Answer renewal, play.scratch.ask({"heartbeat", kFileScope, "--lease", play.lease_of_b}));
  HF_TRY(const Json again, acquire_as_b(play, kFileScope, play.scratch.aside("b-again.json")));
  const auto before = exact_u64(renewal.details().value("expected", Json()));
  const std::uint64_t now = exact_u64(again.value("generation", Json())).value_or(0);
  shown.passed = shown.passed && renewal.code() == "stale_lease_generation" && now > before.value_or(now);
  shown.lines.push_back("B's renewal: " + (renewal.ok() ? "ACCEPTED" : renewal.code()));
  shown.lines.push_back("B acquires again: generation " + std::to_string(now));
  shown.facts["renewal"] = renewal.document;
  shown.facts["acquired"] = again;
  return shown;
}

Result<Shown> b_goes_on(Play& play) {
  std::vector<Sent> all;
  for (const Target& target : play.ground->targets()) {
    const std::string lease = target.state ? play.lease_of_b : play.scratch.aside("b-again.json");
    HF_TRY(Sent sent, play.ground->issue_one(play.scratch.workspace(), target, lease, "B-" + target.kind + "-2", 3));
    all.push_back(std::move(sent));
  }
  return play.ground->deliver_and_judge(play.scratch.workspace(), all, "accepted");
}

}  // namespace

void add_lost_mark_steps(Play& play, std::vector<Step>& steps) {
  const auto loss = std::make_shared<Loss>();
  loss->lease_of_a = play.scratch.aside("a.json");
  play.lease_of_b = play.scratch.aside("b.json");
  play.report.stays_unknown(
      "what was done between a receiver's backup and its restore: its operations are gone with its mark, and a program "
      "that ran may run again");
  play.report.stays_unknown(
      "a workspace that is rolled back as a whole, evidence included: only an anchor outside of it "
      "tells (`init --anchor`)");
  steps.push_back({"a scratch workspace, its server and receivers", [&play] { return set_up(play); }, true});
  steps.push_back({"A acts, and a backup is taken", [&play, loss] { return a_acts_and_backup(play, *loss); }, true});
  steps.push_back({"B takes over, and acts", [&play, loss] { return b_acts(play, *loss); }, true});
  steps.push_back({"the receivers lose what came later", [&play] { return receivers_are_restored(play); }, true});
  steps.push_back({"they are closed, for B and for A", [&play, loss] { return nobody_is_let_through(play, *loss); }});
  steps.push_back({"a person reseeds them", [&play] { return operator_reseeds(play); }, true});
  steps.push_back({"B's commands are taken again", [&play] { return b_acts_again(play); }});
  steps.push_back({"A's late commands are stale", [&play, loss] { return a_is_stale(play, *loss); }});
  steps.push_back({"the workspace's own store is gone", [&play, loss] { return store_is_lost(play, *loss); }});
  steps.push_back({"... and is an old one", [&play, loss] { return store_is_rolled_back(play, *loss); }});
  steps.push_back(
      {"the file's tenancy is an old one", [&play, loss] { return record_is_an_old_one(play, *loss); }, true});
  steps.push_back({"B goes on", [&play] { return b_goes_on(play); }});
}

}  // namespace holdfast::cli::challenge
