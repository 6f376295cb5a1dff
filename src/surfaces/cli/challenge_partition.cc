// t2: a partition. Each side has an authority of its own that says who owns what: A's is a copy of the workspace's
// .squad, taken while A owned everything and then cut off, in which A goes on renewing; on the other side A's leases
// run out unheard, and B acquires. The receivers are the only thing that both sides reach.
#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "surfaces/cli/challenge_play.h"

namespace holdfast::cli::challenge {
namespace {

constexpr const char* kTtl = "5s";  // time enough to copy, and to renew on A's side
constexpr int kExpiryLimitMs = 20'000;

struct Sides {
  std::string of_a = {};  // A's view of the workspace
  std::string lease_of_a = {};
};

Result<Shown> a_acquires(Play& play, const Sides& sides) {
  HF_TRY(const Json leases, play.ground->acquire_all("worker-a", sides.lease_of_a, kTtl));
  Shown shown{.outcome = "A owns them", .facts = {{"leases", leases}}};
  for (const Json& lease : leases.value("leases", Json::array())) {
    shown.lines.push_back("generation " + text_member(lease, "generation") + " of " +
                          text_member(lease, "resource_id"));
  }
  return shown;
}

Result<void> copy_authority(const Scratch& scratch, const std::string& to) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(to + "/.squad", error);
  fs::recursive_directory_iterator entry(scratch.in(".squad"), error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string place = to + "/.squad/" + fs::relative(entry->path(), scratch.in(".squad"), error).string();
    if (entry->is_directory(error)) {
      fs::create_directories(place, error);
    } else if (entry->is_regular_file(error)) {
      fs::copy_file(entry->path(), place, error);
    }
  }
  if (!error) fs::copy_file(scratch.in(kFile), to + "/" + kFile, error);
  if (!error) return {};
  return Refusal(Code::os_failed, "the authority cannot be copied: " + error.message());
}

// A copy is refused as such; only somebody who says that it is the workspace makes two authorities of one.
Result<Shown> sides_part(Play& play, const Sides& sides) {
  HF_CHECK(copy_authority(play.scratch, sides.of_a));
  HF_TRY(const Answer refused, play.scratch.ask_in(sides.of_a, {"acquire", "other", "--owner", "a", "--task", "t"}));
  HF_TRY(const Answer adopted,
         play.scratch.ask_in(sides.of_a, {"init", "--adopt", "--reason", "the challenge's other side"}));
  if (!adopted.ok()) return Refusal::from_json(adopted.document);
  for (const std::string& scope : play.ground->scopes()) {
    HF_TRY(const Answer renewed,
           play.scratch.ask_in(sides.of_a, {"heartbeat", scope, "--lease", sides.lease_of_a, "--ttl", "15m"}));
    if (!renewed.ok()) return Refusal::from_json(renewed.document);
  }
  return Shown{.passed = refused.code() == "workspace_copied",
               .outcome = "two sides",
               .lines = {"A's side: a copy of the authority, cut off; A renews there",
                         "as it was it is refused: " + (refused.ok() ? "NO" : refused.code()),
                         "somebody adopts it by mistake: now there are two authorities"},
               .facts = {{"side_of_a", printable(sides.of_a)}, {"refused", refused.document}}};
}

// On the other side nobody hears of A.
Result<Shown> b_acquires(Play& play) {
  const auto expired = [&play] {
    std::size_t count = 0;
    for (const Json& event : play.scratch.events_since(0)) {
      if (text_member(event, "kind") == "tenancy_ended") ++count;
    }
    return count >= play.ground->targets().size();
  };
  const auto ended = play.scratch.await_event(
      0, [&](const Json&) { return expired(); }, kExpiryLimitMs);
  if (!ended) return Shown{.passed = false, .outcome = "not expired"};
  HF_TRY(const Json leases, play.ground->acquire_all("worker-b", play.lease_of_b, "15m"));
  Shown shown{.outcome = "B owns them", .facts = {{"leases", leases}}};
  for (const Json& line : leases.value("receivers", Json::array())) {
    shown.lines.push_back(text_member(line, "name") + ": mark raised to " + text_member(line, "mark"));
  }
  return shown;
}

std::vector<std::string> owners(const Json& leases) {
  std::vector<std::string> all;
  for (const Json& lease : leases.value("leases", Json::array())) all.push_back(text_member(lease, "owner"));
  return all;
}

Result<Shown> both_believe(Play& play, const Sides& sides) {
  HF_TRY(const Answer here, play.scratch.ask({"leases"}));
  HF_TRY(const Answer there, play.scratch.ask_in(sides.of_a, {"leases"}));
  const std::size_t count = play.ground->targets().size();
  const bool two = owners(here.document) == std::vector<std::string>(count, "worker-b") &&
                   owners(there.document) == std::vector<std::string>(count, "worker-a");
  return Shown{.passed = two,
               .outcome = two ? "two owners" : "not two owners",
               .lines = {"A's authority says worker-a, the other says worker-b"},
               .facts = {{"side_of_a", there.document}, {"side_of_b", here.document}}};
}

// Through A's own authority, which has nothing against it; the file is not on A's side of the partition.
Result<Shown> a_acts(Play& play, const Sides& sides) {
  HF_TRY(play.of_a, play.ground->issue(sides.of_a, "A", sides.lease_of_a, "1", 1));
  std::vector<Sent> reached = play.of_a;
  std::erase_if(reached, [](const Sent& one) { return one.target->kind == "file"; });
  return play.ground->deliver_and_judge(sides.of_a, reached, "stale_lease_generation");
}

Result<Shown> b_acts(Play& play) {
  HF_TRY(play.of_b, play.ground->issue(play.scratch.workspace(), "B", play.lease_of_b, "1", 1));
  return play.ground->deliver_and_judge(play.scratch.workspace(), play.of_b, "accepted");
}

Result<Shown> a_acts_again(Play& play, const Sides& sides) {
  HF_TRY(auto again, play.ground->issue(sides.of_a, "A", sides.lease_of_a, "2", 2));
  std::erase_if(again, [](const Sent& one) { return one.target->kind == "file"; });
  return play.ground->deliver_and_judge(sides.of_a, again, "stale_lease_generation");
}

Result<Shown> sides_meet(Play& play) {
  return play.ground->deliver_and_judge(play.scratch.workspace(), play.of_a, "stale_lease_generation");
}

// A's side has a chain of its own, and it goes into the package as a part of it.
Result<Shown> keep_the_other_chain(Play& play, const Sides& sides) {
  HF_TRY(const Answer verified, play.scratch.ask_in(sides.of_a, {"evidence", "verify"}));
  evidence::Package part{.files = Scratch::evidence_segments_in(sides.of_a),
                         .facts = manifest_facts("t2: A's side", true, Json::array())};
  play.report.also_has("side-of-a", std::move(part));
  return Shown{.passed = verified.ok() && verified.document.value("verified", false),
               .outcome = "kept",
               .lines = {"both chains are in the package: A's as its part side-of-a"},
               .facts = {{"side_of_a", verified.document}}};
}

}  // namespace

void add_partition_steps(Play& play, std::vector<Step>& steps) {
  const auto sides = std::make_shared<Sides>();
  sides->of_a = play.scratch.aside("side-of-a");
  sides->lease_of_a = play.scratch.aside("a.json");
  play.lease_of_b = play.scratch.aside("b.json");
  play.report.stays_unknown(
      "two authorities under one identity that both go on granting issue the same numbers: no receiver tells these "
      "apart; an operator who adopts a copy answers for there being one");
  play.report.stays_unknown(
      "a partition of networks: both sides were processes of this machine, with separate stores and the same "
      "receivers");
  steps.push_back({"a scratch workspace, its server and receivers", [&play] { return set_up(play); }, true});
  steps.push_back(
      {"A acquires every resource for 5 seconds", [&play, sides] { return a_acquires(play, *sides); }, true});
  steps.push_back(
      {"the partition: A is on a side of its own", [&play, sides] { return sides_part(play, *sides); }, true});
  steps.push_back({"here A's leases expire, and B acquires", [&play] { return b_acquires(play); }, true});
  steps.push_back({"each side names another owner", [&play, sides] { return both_believe(play, *sides); }});
  steps.push_back({"A acts, with its authority's consent", [&play, sides] { return a_acts(play, *sides); }});
  steps.push_back({"B acts", [&play] { return b_acts(play); }});
  steps.push_back({"A acts again, on what B left", [&play, sides] { return a_acts_again(play, *sides); }});
  steps.push_back({"A's commands arrive on B's side", [&play] { return sides_meet(play); }});
  steps.push_back({"the evidence of A's side", [&play, sides] { return keep_the_other_chain(play, *sides); }});
}

}  // namespace holdfast::cli::challenge
