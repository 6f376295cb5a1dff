#include "engine/handoff_survey.h"

#include <map>

#include "base/json.h"
#include "engine/acts.h"
#include "engine/receiver_registry.h"

namespace holdfast::engine {
namespace {

class Surveyor {
 public:
  Surveyor(Context& context, Transition& transition, const Scope& scope, const Json& handoff)
      : context_(context),
        transition_(transition),
        scope_(scope),
        handoff_(handoff),
        old_(exact_u64(handoff["from"].value("generation", Json())).value_or(0)) {}

  Result<Survey> run() {
    HF_CHECK(look_at_owners());
    HF_CHECK(look_at_receivers());
    HF_CHECK(look_at_evidence());
    HF_CHECK(look_at_acts());
    HF_CHECK(look_at_unknown_effects());
    return std::move(found_);
  }

 private:
  void stands_in_the_way(const char* what, const std::string& id, const std::string& why, const char* closes_with) {
    if (!id.empty() && handoff_["accepted"].contains(id)) return;
    Json entry = {{"what", what}, {"why", why}, {"closes_with", closes_with}};
    if (!id.empty()) entry["id"] = id;
    found_.in_the_way.push_back(std::move(entry));
  }

  // A person's acceptance closes no unknown effect: only what became of it does.
  void effect_is_unknown(const std::string& id, const Json& evidence, const std::string& why, const char* closes_with) {
    found_.ambiguous.push_back({{"id", id},
                                {"why", why},
                                {"evidence", evidence},
                                {"owner", handoff_["reconciliation_owner"]},
                                {"review_trigger", handoff_["review_trigger"]}});
    found_.in_the_way.push_back({{"what", "effect_unknown"}, {"id", id}, {"why", why}, {"closes_with", closes_with}});
  }

  static Json described(const Tenancy& tenancy) {
    return Json{{"owner", tenancy.owner},
                {"task_id", tenancy.task_id},
                {"generation", tenancy.generation.text()},
                {"since", tenancy.started_at}};
  }

  Result<void> look_at_owners() {
    Json leases = Json::array();
    const Json& from = handoff_["from"];
    for (const auto& [full, held] : transition_.state.held) {
      if (!overlaps(held.scope, scope_)) continue;
      leases.push_back(describe_holder(held, transition_.now));
      const bool is_of_old_owner =
          held.owner == text_member(from, "owner") && held.task_id == text_member(from, "task_id");
      if (held.generation.value <= old_ || (is_of_old_owner && held.scope != scope_)) {
        stands_in_the_way("lease_held", "", held.owner + " still holds " + held.scope.display(),
                          "its release, its expiry, or an owner's authorisation");
      } else if (held.scope == scope_) {
        found_.new_owner = described(held);
      }
    }
    found_.inventory["leases"] = std::move(leases);
    HF_TRY(const auto last, context_.store->last_ended(scope_));
    if (found_.new_owner.is_null() && last && last->tenancy.generation.value > old_) {
      found_.new_owner = described(last->tenancy);
      found_.new_owner["ended_by"] = last->ended_by;
    }
    if (found_.new_owner.is_null()) {
      stands_in_the_way("no_new_owner", "", "nobody has acquired " + scope_.display() + " since",
                        "an acquisition by the new owner");
    }
    return {};
  }

  // What was sent under the old generation and is not known to have come to an end, and the first act of the new one.
  Result<void> look_at_evidence() {
    HF_CHECK(context_.chain->each([&](const Json& event) {
      const auto scope = parse_canonical_scope(text_member(event, "scope"));
      if (scope.ok() && overlaps(*scope, scope_)) note(event);
      return true;
    }));
    Json commands = Json::array();
    for (const auto& [operation_id, sent] : sent_) {
      const bool is_accepted = handoff_["accepted"].contains(operation_id);
      const bool is_fenced = !sent.runs && receivers_are_fenced_;
      commands.push_back({{"operation_id", operation_id},
                          {"state", sent.runs ? "running" : "on its way"},
                          {"evidence", sent.event},
                          {"classified", is_accepted ? Json("accepted by a person")
                                         : is_fenced ? Json("fenced: whenever it arrives its generation is refused")
                                                     : Json()}});
      if (is_fenced) continue;
      stands_in_the_way("command_unclassified", operation_id,
                        sent.runs
                            ? "program " + operation_id + " was started under the old generation and has not come back"
                            : "command " + operation_id + " is on its way, and a receiver would still take it",
                        sent.runs ? "its end, `receiver settle`, or `handoff close --accept` with this id"
                                  : "the receiver's mark above the old generation");
    }
    found_.inventory["commands"] = std::move(commands);
    for (const auto& [operation_id, event] : unknown_) {
      effect_is_unknown(operation_id, event, "the outcome of " + operation_id + " at its receiver is not known",
                        "the same command sent again: its operation id tells");
    }
    if (found_.old_owner_ended.is_null() && transition_.state.find(scope_) == nullptr) {
      stands_in_the_way("old_owner_unknown", "", "no event says how generation " + std::to_string(old_) + " ended",
                        "`holdfast recover`, or an owner's authorisation");
    }
    if (!refusal_.is_null() && !found_.old_owner_ended.is_null()) found_.old_owner_ended["refused"] = refusal_;
    return {};
  }

  // Its own generation and everything older; and what the old owner held within the scope, under a generation of its
  // own, until the new owner's.
  bool is_of_old_owner(std::uint64_t generation, const Json& command) const {
    if (generation <= old_) return true;
    const Json& from = handoff_["from"];
    const auto fresh = exact_u64(found_.new_owner.is_object() ? found_.new_owner["generation"] : Json());
    return text_member(command, "owner") == text_member(from, "owner") &&
           text_member(command, "task_id") == text_member(from, "task_id") &&
           text_member(command, "resource") != scope_.full() && generation < fresh.value_or(UINT64_MAX);
  }

  // The receiver looked its operations through, did not find this one, and takes it no more. Of any other refusal
  // (bytes that were not the command's, a receiver out of reach) the command is as far as it was.
  static bool says_that_it_was_not_applied(const Json& facts) {
    const std::string decision = text_member(facts, "decision");
    const bool is_judged = decision == "stale_lease_generation" || decision == "control_epoch_revoked" ||
                           decision == "lease_expired" || decision == "record_missing" ||
                           decision == "record_version_changed";
    const Json inputs = facts.value("inputs", Json::object());
    return is_judged && inputs.is_object() && inputs.value("applied_operation", Json()).is_null();
  }

  void note(const Json& event) {
    const std::string kind = text_member(event, "kind");
    const Json facts = event.value("facts", Json::object());
    const Json command = facts.value("command", Json::object());
    const std::string id = text_member(command, "operation_id");
    const auto generation = exact_u64(command.value("generation", facts.value("generation", Json())));
    const bool is_old = generation && is_of_old_owner(*generation, command);
    const bool is_an_end = kind == "tenancy_ended" || kind == "released_with_ungated_content";
    if (is_an_end && generation == old_ && scope_.full() == text_member(event, "scope")) {
      found_.old_owner_ended = {{"generation", std::to_string(old_)},
                                {"ended_by", facts.value("ended_by", Json())},
                                {"at", event.value("at", Json())},
                                {"evidence", event["id"]}};
    }
    if (kind == "command_finished" || kind == "command_settled") sent_.erase(text_member(facts, "operation_id"));
    // Issued once more, it is no less under way than before.
    const bool runs_already = sent_.contains(id) && sent_[id].runs;
    if (kind == "command_issued" && is_old && !runs_already) sent_[id] = {event["id"], !facts.contains("travels")};
    if (kind == "command_outcome_unknown" && is_old) unknown_[id] = event["id"];
    if (kind == "command_accepted" || kind == "command_repeated") {
      unknown_.erase(id);
      const bool starts = text_member(facts.value("outcome", Json()), "state") == "started";
      if (!starts) sent_.erase(id);
      if (starts && is_old) sent_[id] = {event["id"], true};
    }
    const bool is_first = generation && *generation > old_ && !is_old && found_.first_accepted.is_null();
    const bool is_accepted = kind == "command_accepted" || kind == "write_published" || kind == "command_issued";
    if (is_first && is_accepted) found_.first_accepted = std::to_string(*generation);
    if (kind != "command_refused" || !is_old) return;
    const std::string decision = text_member(facts, "decision");
    const bool is_fenced =
        decision == "stale_lease_generation" || decision == "lease_expired" || decision == "control_epoch_revoked";
    if (is_fenced) refusal_ = event["id"];
    // Its receiver has it as started, whether or not the event of the start was written.
    if (text_member(facts, "decision") == "receiver_outcome_unknown") sent_[id] = {event["id"], true};
    if (!says_that_it_was_not_applied(facts)) return;
    unknown_.erase(id);
    // A program that was started is not undone by a second delivery that was refused.
    if (const auto sent = sent_.find(id); sent != sent_.end() && !sent->second.runs) sent_.erase(sent);
  }

  // An act is bound to its generation: once that has ended nothing can commit it.
  Result<void> look_at_acts() {
    HF_TRY(const auto open, open_acts(context_, scope_));
    Json acts = Json::array();
    for (const Json& act : open) {
      const Json& command = act["command"];
      const auto generation = exact_u64(command.value("generation", Json())).value_or(0);
      if (!is_of_old_owner(generation, command)) continue;
      const auto held = transition_.state.held.find(text_member(command, "resource"));
      const bool fenced = held == transition_.state.held.end() || held->second.generation.value != generation;
      const std::string id = text_member(command, "operation_id");
      const bool begun = text_member(act, "state") == "committing";
      acts.push_back({{"operation_id", id},
                      {"state", act["state"]},
                      {"generation", command["generation"]},
                      {"classified", fenced && !begun ? Json("fenced: its generation has ended") : Json()}});
      if (begun) {
        // Its effect is unknown: no acceptance closes that.
        found_.in_the_way.push_back({{"what", "act_unclassified"},
                                     {"id", id},
                                     {"why", "the commit of act " + id + " was begun, and its outcome is not recorded"},
                                     {"closes_with", "`act commit` once more: its receiver tells what became of it"}});
      } else if (!fenced) {
        stands_in_the_way("act_unclassified", id, "act " + id + " can still be committed under the old generation",
                          "the end of the old tenancy");
      }
    }
    found_.inventory["acts"] = std::move(acts);
    return {};
  }

  // A receiver whose mark is not above the old generation still takes what the old owner sent.
  Result<void> look_at_receivers() {
    const auto needed = exact_u64(found_.new_owner.is_object() ? found_.new_owner["generation"] : Json());
    if (scope_.is_file()) {
      // The file receiver compares with the tenancy itself, in the transition of the effect.
      found_.receivers.push_back({{"name", "file"}, {"fenced", needed.has_value()}});
    }
    HF_TRY(const auto all, receivers_overlapping(context_, scope_));
    bool is_ready = true;
    for (const Registered& one : all) {
      const auto mark = mark_of(one);
      const bool fenced = mark.ok() && mark->has_value() && (*mark)->value > old_ && one.closed.is_null();
      is_ready = is_ready && fenced;
      Json line = {
          {"name", one.name}, {"fenced", fenced}, {"mark", mark.ok() && *mark ? Json((*mark)->text()) : Json()}};
      if (!mark.ok()) line["reason"] = mark.refusal().message();
      found_.receivers.push_back(std::move(line));
      if (!fenced) {
        stands_in_the_way("receiver_unfenced", "",
                          "receiver " + one.name +
                              (mark.ok() ? " has no mark above the old generation"
                                         : " cannot be reached: " + mark.refusal().message()),
                          "reaching it (the next command or acquisition raises its mark), or `receiver reseed`");
      }
    }
    receivers_are_fenced_ = is_ready && needed.has_value();
    if (found_.new_owner.is_object()) found_.new_owner["ready"] = is_ready;
    return {};
  }

  Result<std::optional<Generation>> mark_of(const Registered& registered) {
    HF_TRY(const ReceiverInUse use, use_receiver(context_, registered));
    return use->read_mark(registered.resource);
  }

  Result<void> look_at_unknown_effects() {
    HF_TRY(const auto records, context_.records->all(evidence::RecordKind::reconcile));
    for (const Json& record : records) {
      const auto concerned = parse_canonical_scope(text_member(record, "scope"));
      if (text_member(record, "state") == "resolved" || (concerned.ok() && !overlaps(*concerned, scope_))) continue;
      const std::string id = text_member(record, "id");
      effect_is_unknown(id, record.value("event", Json()), "the outcome of a publish waits for a person: " + id,
                        "`holdfast reconcile resolve`");
    }
    return {};
  }

  Context& context_;
  Transition& transition_;
  const Scope& scope_;
  const Json& handoff_;
  std::uint64_t old_;
  struct Sent {
    Json event;
    bool runs = false;  // a program that was started; else a command in a queue
  };
  std::map<std::string, Sent> sent_;
  std::map<std::string, Json> unknown_;
  bool receivers_are_fenced_ = false;
  Json refusal_;
  Survey found_;
};

}  // namespace

Result<Survey> survey(Context& context, Transition& transition, const Scope& scope, const Json& handoff) {
  return Surveyor(context, transition, scope, handoff).run();
}

}  // namespace holdfast::engine
