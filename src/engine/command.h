// exec: a program is run only under a tenancy that is current, with the command in its environment (CONTRACT section
// 8).
//
// Calling sequence: command_begin, run the program, command_end. Begin judges the keys under the transition and records
// that the command was issued; end records how the program ended, and whether the tenancy was still current then.
// command_issue makes a command that travels by itself, through a queue or a retry, to a receiver; the event says that
// it is on its way.
// Does not promise: that what the program does is fenced; it carries the command to receivers that do that.
// The command's members are those of CONTRACT section 5.
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// Everything but the payload: {"operation_id","resource",…,"issuer","precondition"}.
Json command_envelope(const Context& context, const Tenancy& tenancy, const std::string& operation_id,
                      const std::string& family, const std::string& precondition, const std::string& payload_sha256);

// {"command":{…},"evidence"}
Result<Json> command_begin(Context& context, const Json& arguments, const Caller& caller);
// {"current":bool,"reason"?,"evidence"}
Result<Json> command_end(Context& context, const Json& arguments, const Caller& caller);

// {"payload_base64","family"?,"precondition"?,"operation_id"?} -> {"command":{…},"payload_base64","evidence"}
Result<Json> command_issue(Context& context, const Json& arguments);

}  // namespace holdfast::engine
