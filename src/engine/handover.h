// The engine's part of an image handoff (docs/formats/handoff.md): guards, tenancies and what is only in memory.
//
//   the image that hands over                          the one that takes over
//   begin_handover(): due things done, scopes listed
//   share_guards(): for each guard                --->  begin_guard(), offer_object(), settle_object()
//   guards_stand_by(): nobody is diverted now     --->  learn(states)
//   transfer_holder() (engine/transfer.h)
//                                                       guards_answer(), or, where the other died, take_over() first
//   withdraw()
//
// guards_answer_again() takes guards_stand_by() back, and take_over() the transfer, where the other image failed.
// Promises: take_over moves exactly the tenancies that name that process and session; those of which this image should
// hold a guard and holds none stay with the dead, unenforced. Errors: handoff_failed, those of a commit.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// Observations recorded; the server-held tenancies of this very process.
Result<std::vector<std::string>> begin_handover(Context& context);
Result<void> share_guards(Context& context, const std::shared_ptr<Successor>& successor);
Json guards_stand_by(Context& context);
void guards_answer_again(Context& context);

Result<void> begin_guard(Context& context, GuardedPlace place);
Result<bool> offer_object(Context& context, const std::string& scope, os::Handle object,
                          const std::string& temporary_name, bool leased);
void settle_object(Context& context, const std::string& scope, bool taken);
Result<void> learn(Context& context, const Json& states);
void guards_answer(Context& context);
Result<Json> take_over(Context& context, const Holder& gone);

}  // namespace holdfast::engine
