#include "evidence/decision.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.h"

namespace holdfast::evidence {
namespace {

// Of the six keys these four tell two tenancies of one scope apart; the scope's two count where they are recorded.
constexpr std::array<std::string_view, 4> kKeys = {"generation", "owner", "started_at", "task"};
constexpr std::array<std::string_view, 2> kScopeKeys = {"namespace", "resource_id"};
constexpr std::array<std::string_view, 11> kRecomputed = {
    "accepted",       "stale_lease_generation",  "control_epoch_revoked",
    "lease_expired",  "generation_incomparable", "receiver_high_water_missing",
    "repeated",       "operation_id_reused",     "record_version_changed",
    "record_missing", "receiver_outcome_unknown"};

const Json* member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool same(const Json& one, const Json& other) {
  // A generation is the same as text and as an integer.
  const auto number = exact_u64(one);
  return number && exact_u64(other) ? number == exact_u64(other) : one == other;
}

bool differs(const Json& inputs, std::string_view key) {
  const Json* presented = member(inputs, "presented_" + std::string(key));
  const Json* current = member(inputs, "current_" + std::string(key));
  if (presented == nullptr || current == nullptr) return presented != current;
  return !same(*presented, *current);
}

// What is answered before the tenancy is looked at; nullopt: nothing against it. A receiver with a mark of its own
// compares that, too.
std::optional<std::string> receiver_answer(const Json& inputs, bool has_mark) {
  const auto presented = exact_u64(inputs.value("presented_generation", Json()));
  if (has_mark && (!presented || *presented == 0)) return "generation_incomparable";
  if (inputs.contains("presented_epoch") && exact_u64(inputs["presented_epoch"]).value_or(0) == 0) {
    return "generation_incomparable";
  }
  if (inputs.contains("expected_issuer") && inputs.value("presented_issuer", Json()) != inputs["expected_issuer"]) {
    return "generation_incomparable";
  }
  const auto mark = exact_u64(inputs.value("receiver_mark", Json()));
  const auto copy = exact_u64(inputs.value("workspace_mark", Json())).value_or(0);
  if (has_mark && (!mark || *mark < copy)) return "receiver_high_water_missing";
  if (const Json* applied = member(inputs, "applied_operation"); applied != nullptr && !applied->is_null()) {
    if (*applied != inputs.value("presented_operation", Json())) return "operation_id_reused";
    return text_member(inputs, "applied_state") == "started" ? "receiver_outcome_unknown" : "repeated";
  }
  if (has_mark && *presented < *mark) return "stale_lease_generation";
  return std::nullopt;
}

// What the effect itself was refused for, after nothing else was against it.
std::optional<std::string> effect_answer(const Json& inputs) {
  const Json* effect = member(inputs, "effect");
  if (effect == nullptr || !effect->is_object()) return std::nullopt;
  if (effect->contains("current") && effect->contains("expected") && (*effect)["current"] != (*effect)["expected"]) {
    return "record_version_changed";
  }
  return effect->contains("key") ? std::optional<std::string>("record_missing") : std::nullopt;
}

// nullopt: the inputs are incomplete.
std::optional<std::string> answer_of(const Json& inputs) {
  const bool by_receiver = inputs.contains("receiver_mark");
  if (const auto answer = receiver_answer(inputs, by_receiver)) return answer;
  for (const std::string_view key : kKeys) {
    const bool complete =
        inputs.contains("presented_" + std::string(key)) && inputs.contains("current_" + std::string(key));
    // A receiver need not know the tenancy; a record of it that is there counts.
    if (!complete && !by_receiver) return std::nullopt;
    if (differs(inputs, key)) return "stale_lease_generation";
  }
  for (const std::string_view key : kScopeKeys) {
    if (differs(inputs, key)) return "stale_lease_generation";
  }
  for (const std::string_view flag : {"revoked", "expired"}) {
    const Json* value = member(inputs, std::string(flag));
    if (value == nullptr && by_receiver) continue;
    if (value == nullptr || !value->is_boolean()) return std::nullopt;
    if (value->get<bool>()) return flag == "revoked" ? "control_epoch_revoked" : "lease_expired";
  }
  if (inputs.contains("effect")) return effect_answer(inputs);
  return "accepted";
}

bool is_recomputed(const std::string& decision) {
  for (const std::string_view known : kRecomputed) {
    if (decision == known) return true;
  }
  return false;
}

}  // namespace

Recomputed recompute(const Json& decision) {
  using Verdict = Recomputed::Verdict;
  const std::string said = text_member(decision, "decision");
  if (said.empty()) return {Verdict::differs, "not a decision"};
  if (!is_recomputed(said)) return {Verdict::unknown, "the decision " + printable(said) + " is not recomputed"};
  const Json* inputs = member(decision, "inputs");
  if (inputs == nullptr || !inputs->is_object()) return {Verdict::unknown, "no inputs are recorded"};
  const std::optional<std::string> answer = answer_of(*inputs);
  if (!answer) return {Verdict::unknown, "the recorded inputs are incomplete"};
  if (*answer == said) return {Verdict::agrees, {}};
  return {Verdict::differs, "it says " + said + ", its inputs give " + *answer};
}

}  // namespace holdfast::evidence
