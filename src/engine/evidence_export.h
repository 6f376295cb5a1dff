// `evidence export`: the chain as it is, as a package that can be checked without the workspace (evidence/package.h).
#pragma once
#include "engine/context.h"

namespace holdfast::engine {

// arguments: to, an absolute path of a folder that is made, or is empty. {"exported","chain":{…}}. A chain that does
// not verify is exported all the same, and the answer says where it breaks.
Result<Json> evidence_export(Context& context, const Json& arguments);

}  // namespace holdfast::engine
