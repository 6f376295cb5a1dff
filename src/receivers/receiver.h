// Receiver: where an effect happens, and where the fence is (second seed, step 4).
//
// A receiver keeps, beside its own state and in the same transaction as each effect, the highest generation that it has
// accepted for a resource (its mark) and the operations that it has applied. deliver() is the one way to an effect, the
// same for all of them; a receiver only says how its transaction, its mark, its operations and its effect are stored.
//
// Calling sequence: open a receiver by hand in main's ReceiverSet; make_mark() when the resource is first leased;
// raise_mark() at each takeover, before the new owner is ready; deliver() for each command.
// Promises of deliver(), in the order of CONTRACT section 5: incomparable, mark missing or below the workspace's copy,
// operation id reused, applied before (the first outcome again, no second effect), stale; then the effect, its
// verification, mark and operation in one transaction. Every refusal leaves state, mark and operations as they were.
// Does not promise: exactly-once beyond this receiver; that the command's issuer is genuine; that a receiver that was
// restored together with everything else of its world is noticed without the workspace's copy.
// Threads: one delivery at a time on one Receiver object; several processes at once.
// Durability: what deliver() answers with is durable when it returns.
// Errors: generation_incomparable receiver_high_water_missing operation_id_reused stale_lease_generation
// control_epoch_revoked lease_expired receiver_unreachable, and the effect's own (record_version_changed,
// record_missing, …). An answer of a commit that never came is `receiver_outcome_unknown`: asking again with the same
// operation id tells. Source: CONTRACT section 5; second seed, contract 2.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "holdfast/command.h"
#include "holdfast/result.h"

namespace holdfast::receivers {

struct Applied {
  Command command;  // as it was accepted
  Json outcome;
};

// From the texts that a receiver keeps of an operation. receiver_unreachable where they cannot be read.
Result<Applied> applied_from_texts(const std::string& operation_id, const std::string& command,
                                   const std::string& outcome);

// One transaction of a receiver, rolled back where it is dropped without commit().
class Transaction {
 public:
  virtual ~Transaction() = default;
  virtual Result<std::optional<Generation>> mark(const std::string& resource) = 0;
  virtual Result<void> set_mark(const std::string& resource, Generation mark) = 0;
  virtual Result<std::optional<Applied>> applied(const std::string& operation_id) = 0;
  virtual Result<void> remember(const Applied& applied) = 0;

  // The effect and its verification; the outcome is what is answered now and for ever to this operation id. `capture`
  // is given the state before, durably, before anything changes.
  using Capture = std::function<Result<Json>(const Json& before)>;
  virtual Result<Json> apply(const Command& command, const std::string& payload, const Capture& capture) = 0;
  virtual Result<void> commit() = 0;
  // Whether commit() refused because of the effect: a receiver may send an effect and its verification with the commit.
  virtual bool is_effect_refused() const { return false; }
  // Whether commit() refused because what was judged may not hold any more, and did nothing: deliver() judges anew.
  virtual bool is_overtaken() const { return false; }
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual std::string kind() const = 0;
  // Exclusive from its first statement, so that check and effect cannot be parted. receiver_unreachable.
  virtual Result<std::unique_ptr<Transaction>> begin() = 0;
  // The same, with what deliver() will ask for: a receiver that is far away can ask for all of it at once. It need not
  // be exclusive where commit() compares what was judged with what is there then, and is_overtaken() where it differs;
  // deliver() then judges once more, from begin(), and hands the state before over once more.
  virtual Result<std::unique_ptr<Transaction>> begin_for(const Command&, const std::string& /*payload*/) {
    return begin();
  }
  // Looks at the effect again from outside of the transaction that made it; what it finds is a fact of the decision.
  virtual Result<Json> observe(const Command& command, const std::string& payload) = 0;
  // Of a receiver whose effect takes time (a program): the outcome that is remembered from now on, of an operation that
  // was accepted as started; nullopt forgets it, so that it may run again. `usage` where every outcome is final.
  virtual Result<void> settle(const std::string& operation_id, const std::optional<Json>& outcome);
};

// The outcome of an operation that was accepted and has not come back: asked again, it is receiver_outcome_unknown.
Json started_outcome(const Command& command);
bool is_started(const Json& outcome);

// What the authority says of the resource, looked up under its transition. Without one (another machine, a receiver
// that only has its mark) the mark alone decides.
struct Current {
  Issuer issuer;                             // whose generations this receiver compares
  std::optional<Generation> workspace_mark;  // the workspace's own copy of the mark
  bool knows_tenancy = false;                // the four that follow count
  std::optional<Generation> generation;      // nullopt: nobody holds it
  std::string owner;
  std::string task_id;
  Epoch epoch;
  bool expired = false;
  std::optional<Generation> ended =
      {};  // nobody holds it: of the tenancy that ended last, for who asks what is current
};

// The second seed's second contract, with the inputs it was made from: evidence::recompute gives the same decision.
struct Decision {
  std::string decision;  // "accepted", "repeated", or the refusal's code
  Json inputs = Json::object();
  Json to_json(const Command& command) const;
};

struct Delivery {
  Decision decision;
  std::optional<Refusal> refusal;
  Json outcome;                    // of an accepted or repeated command
  bool repeated = false;           // it was applied before; nothing was done now
  std::optional<Generation> mark;  // of the receiver, after it
  Json observed;                   // of an accepted one: what an outside look saw after the commit
};

// Judges and, where nothing is against it, applies. A Result's refusal is the machine's; a judged "no" is in the
// Delivery.
Result<Delivery> deliver(Receiver& receiver, const Json& command, const std::string& payload, const Current& current,
                         const Transaction::Capture& capture = {});

// receiver_high_water_missing where `expected` is known and the receiver's mark is missing or below it: only a reseed
// makes one up.
Result<void> raise_mark(Receiver& receiver, const std::string& resource, Generation to,
                        std::optional<Generation> expected);
// The first mark; an existing one is left alone. What the receiver has then.
Result<Generation> make_mark(Receiver& receiver, const std::string& resource, Generation first);
// A person's decision (`receiver reseed --reason`): the mark is set whatever was there, never below it.
Result<Generation> reseed(Receiver& receiver, const std::string& resource, Generation mark);
Result<std::optional<Generation>> read_mark(Receiver& receiver, const std::string& resource);

}  // namespace holdfast::receivers
