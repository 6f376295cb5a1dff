// The part of JSON Schema that the tools' schemas are written in, as a check: what is wrong with a value, "" where
// nothing is. A keyword that it does not know is wrong as well, so that no schema outgrows the check unseen.
//
//   EXPECT_EQ(schema_problem(output_schema(tool), answer), "");
#pragma once
#include <string>

#include "holdfast/refusal.h"

namespace holdfast::support {

std::string schema_problem(const Json& schema, const Json& value, const std::string& at = "$");

}  // namespace holdfast::support
