// Commands delivered to receivers, under the transition (CONTRACT section 5), and receivers as a person sees them.
//
// Calling sequence: receiver_add; acquire (which makes or raises the mark: ready_receivers); deliver for each command;
// delivery_end once the program of a command receiver has ended, or receiver_settle by a person where it never will.
// Promises: a delivery decides, applies and is recorded under one transition, to the receiver's commit; each decision
// is an event with its inputs, from which it can be computed again; the copy of a mark is raised after the receiver's.
// A command for a file is a guarded replacement (write.h) with the same answers. Where the outcome of a commit is
// unknown, an event says so and the handoff stays open until the same command asked again tells.
// Does not promise: that a receiver which cannot be reached takes a takeover: it stays closed, and says so.
// Errors: not_found, target_exists, usage, what receivers::deliver() judges, receiver_unreachable,
// governing_source_is_destination, and those of write.h for files.
#pragma once
#include <functional>
#include <string>

#include "engine/context.h"

namespace holdfast::engine {

Result<Json> receiver_add(Context& context, const Json& arguments);
Result<Json> receiver_list(Context& context);
Result<Json> receiver_reseed(Context& context, const Json& arguments);
Result<Json> receiver_settle(Context& context, const Json& arguments);

constexpr std::size_t kPayloadMax = 16U << 20U;

// {"command":{…},"payload_base64"} -> {"decision","outcome","repeated","evidence"}
Result<Json> deliver(Context& context, const Json& arguments);
struct DeliveryTerms {
  bool runs_programs = false;  // else a command receiver refuses: nobody would run what it accepts
  // Under the very transition of the effect, before it: what else has to hold (an act's approval).
  std::function<Result<void>()> revalidate = {};
};
Result<Json> deliver_command(Context& context, const Json& command, const std::string& payload,
                             const DeliveryTerms& terms = {});
// {"resource","operation_id","exit_status"}: the program of a started command has ended.
Result<Json> delivery_end(Context& context, const Json& arguments);

// file_delivery.cc
Result<Json> deliver_to_file(Context& context, const Json& command, const std::string& payload,
                             const DeliveryTerms& terms);

// After a grant, outside of the transition: the marks of the receivers that these leases concern are made or raised.
// One entry for each: {"name","resource","state":"ready"|"closed","mark","reason"}.
Json ready_receivers(Context& context, const Json& leases);

}  // namespace holdfast::engine
