// t3: commands cross a handoff in a queue. A worker took A's items and never delivered them; B acquires and acts; then
// another worker takes over what was left, A's items and B's own, which had been delivered and never acknowledged.
#include <algorithm>

#include "base/json.h"
#include "surfaces/cli/challenge_play.h"
#include "surfaces/cli/challenge_stream.h"

namespace holdfast::cli::challenge {
namespace {

struct Crossing {
  std::unique_ptr<Queue> queue = {};
  std::string lease_of_a = {};
};

// The commands of `lines`, in their order, with what was sent under that operation id.
std::vector<Sent> sent_in(const std::vector<std::string>& lines, const std::vector<Sent>& known) {
  std::vector<Sent> all;
  for (const std::string& line : lines) {
    const auto envelope = parse_json(line);
    const std::string id = envelope ? text_member(envelope->value("command", Json::object()), "operation_id") : "";
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const Sent& one) { return one.operation_id == id; });
    if (found == known.end()) continue;
    all.push_back(*found);
    all.back().line = line;  // as it came out of the queue
  }
  return all;
}

Result<Shown> open_queue(Play& play, Crossing& crossing) {
  HF_TRY(crossing.queue, Queue::open(play.scratch));
  const std::string what = crossing.queue->what();
  if (!what.starts_with("a Redis")) play.report.stays_unknown("a real broker: the queue was " + what);
  return Shown{
      .outcome = what.starts_with("a Redis") ? "Redis" : "a file", .lines = {what}, .facts = {{"queue", what}}};
}

Result<void> send_all(Crossing& crossing, const std::vector<Sent>& sent) {
  for (const Sent& one : sent) HF_CHECK(crossing.queue->send(one.line));
  return {};
}

Result<Shown> a_acts(Play& play, Crossing& crossing) {
  HF_TRY(const Json leases, play.ground->acquire_all("worker-a", crossing.lease_of_a, "15m"));
  HF_TRY(play.of_a, play.ground->issue(play.scratch.workspace(), "A", crossing.lease_of_a, "1", 1));
  HF_CHECK(send_all(crossing, play.of_a));
  HF_TRY(const auto lines, crossing.queue->take("worker-1"));
  HF_TRY(Shown shown, play.ground->deliver_and_judge(play.scratch.workspace(), sent_in(lines, play.of_a), "accepted"));
  HF_CHECK(crossing.queue->acknowledge("worker-1"));
  shown.passed = shown.passed && lines.size() == play.of_a.size();
  shown.facts["leases"] = leases;
  return shown;
}

Result<Shown> a_sends_more(Play& play, Crossing& crossing) {
  HF_TRY(play.of_a, play.ground->issue(play.scratch.workspace(), "A", crossing.lease_of_a, "late", 3));
  HF_CHECK(send_all(crossing, play.of_a));
  HF_TRY(const auto taken, crossing.queue->take("worker-2"));
  return Shown{.passed = taken.size() == play.of_a.size(),
               .outcome = std::to_string(taken.size()) + " delayed",
               .lines = {"worker 2 took them from the queue and stalls"}};
}

Result<Shown> hand_over(Play& play, Crossing& crossing) {
  for (const std::string& scope : play.ground->scopes()) {
    HF_TRY(const Answer opened, play.scratch.ask({"handoff", "open", scope, "--reason", "the challenge"}));
    if (!opened.ok()) return Refusal::from_json(opened.document);
  }
  HF_CHECK(play.ground->release_all(crossing.lease_of_a));
  HF_TRY(const Json leases, play.ground->acquire_all("worker-b", play.lease_of_b, "15m"));
  Shown shown{.outcome = "B holds them", .facts = {{"leases", leases}}};
  for (const Json& lease : leases.value("leases", Json::array())) {
    shown.lines.push_back("generation " + text_member(lease, "generation") + " of " +
                          text_member(lease, "resource_id"));
  }
  return shown;
}

Result<Shown> b_acts(Play& play, Crossing& crossing) {
  HF_TRY(play.of_b, play.ground->issue(play.scratch.workspace(), "B", play.lease_of_b, "1", 2));
  HF_CHECK(send_all(crossing, play.of_b));
  HF_TRY(const auto lines, crossing.queue->take("worker-3"));
  HF_TRY(Shown shown, play.ground->deliver_and_judge(play.scratch.workspace(), sent_in(lines, play.of_b), "accepted"));
  shown.passed = shown.passed && lines.size() == play.of_b.size();
  shown.lines.push_back("worker 3 ends before it acknowledges them");
  return shown;
}

Result<Shown> late_items_arrive(Play& play, Crossing& crossing, std::vector<std::string>& left) {
  HF_TRY(left, crossing.queue->take_over("worker-4"));
  const auto late = sent_in(left, play.of_a);
  HF_TRY(Shown shown, play.ground->deliver_and_judge(play.scratch.workspace(), late, "stale_lease_generation"));
  shown.passed = shown.passed && late.size() == play.of_a.size();
  return shown;
}

Result<Shown> applied_items_arrive_again(Play& play, Crossing& crossing, const std::vector<std::string>& left) {
  const auto again = sent_in(left, play.of_b);
  HF_TRY(Shown shown, play.ground->deliver_and_judge(play.scratch.workspace(), again, "repeated"));
  HF_CHECK(crossing.queue->acknowledge("worker-4"));
  shown.passed = shown.passed && again.size() == play.of_b.size();
  shown.lines.push_back("each answered with its first outcome; no second effect");
  return shown;
}

Result<Shown> handoffs_close(Play& play) {
  Shown shown{.outcome = "closed"};
  for (const std::string& scope : play.ground->scopes()) {
    HF_TRY(const Answer closed, play.scratch.ask({"handoff", "close", scope, "--reason", "all was answered"}));
    shown.passed = shown.passed && closed.ok();
    shown.facts[scope] = closed.document;
    if (!closed.ok()) shown.lines.push_back(scope + ": " + closed.message());
  }
  if (!shown.passed) shown.outcome = "still open";
  return shown;
}

}  // namespace

void add_queue_steps(Play& play, std::vector<Step>& steps) {
  const auto crossing = std::make_shared<Crossing>();
  const auto left = std::make_shared<std::vector<std::string>>();
  crossing->lease_of_a = play.scratch.aside("a.json");
  play.lease_of_b = play.scratch.aside("b.json");
  steps.push_back({"a scratch workspace, its server and receivers", [&play] { return set_up(play); }, true});
  steps.push_back({"a queue", [&play, crossing] { return open_queue(play, *crossing); }, true});
  steps.push_back(
      {"A's first commands come through the queue", [&play, crossing] { return a_acts(play, *crossing); }, true});
  steps.push_back(
      {"A sends more, and a worker keeps them", [&play, crossing] { return a_sends_more(play, *crossing); }, true});
  steps.push_back({"the work is handed over to B", [&play, crossing] { return hand_over(play, *crossing); }, true});
  steps.push_back({"B's commands come through the queue", [&play, crossing] { return b_acts(play, *crossing); }, true});
  steps.push_back({"the delayed items are delivered",
                   [&play, crossing, left] { return late_items_arrive(play, *crossing, *left); }, true});
  steps.push_back({"B's items are delivered a second time",
                   [&play, crossing, left] { return applied_items_arrive_again(play, *crossing, *left); }});
  steps.push_back({"the handoffs are closed", [&play] { return handoffs_close(play); }});
}

}  // namespace holdfast::cli::challenge
