// The act that a caller shows beside an operation id ("act": what `act show` printed, or the command alone), compared
// with the one that was prepared.
//
// Promises: every member of the command, typed_key, prepared_version, payload_sha256 and byte_count have to be there
// and the prepared act's (a text is no number); nothing may be there that the act does not have; where payload_base64
// is shown it has to be the bytes. White space and the order of keys mean nothing, nor does how far the act is. Errors:
// act_mismatch (details.differing names each member), usage. Source: CONTRACT section 5.
#pragma once
#include "holdfast/result.h"

namespace holdfast::engine {

// Where nothing is shown nothing is compared.
Result<void> check_presented(const Json& act, const Json& arguments);

}  // namespace holdfast::engine
