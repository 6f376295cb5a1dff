// A change of one row, as a command's payload carries it: exact bytes of canonical JSON.
//
//   {"key":{"id":{"integer":"7"}},"set":{"state":{"text":"paid"},"note":{"null":true}}}
//
// The expected version is the command's precondition, a decimal; table, key columns and version column are the
// receiver's, and no payload can name others. Types: integer (decimal string, signed 64-bit), real (JSON number), text,
// blob (base64), null (never in a key).
// Errors: request_malformed. Threads: value types. Source: CONTRACT section 5; first seed, section 8.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "holdfast/command.h"
#include "holdfast/result.h"

namespace holdfast::receivers {

struct Null {
  bool operator==(const Null&) const = default;
};
struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};
using Value = std::variant<Null, std::int64_t, double, std::string, Blob>;
using Columns = std::map<std::string, Value>;

struct RowChange {
  Columns key;
  Columns set;
  std::int64_t expected_version = 0;
};

// Where the rows of a receiver are.
struct RowTarget {
  std::string table;
  std::vector<std::string> key_columns;
  std::string version_column;
};
Result<RowTarget> row_target_from_json(const Json& config);
Json row_target_to_json(const RowTarget& target);

// Refuses a key that is not exactly the target's, and a change of key or version.
Result<RowChange> read_row_change(const Command& command, const std::string& payload, const RowTarget& target);
Json values_to_json(const Columns& columns);
Result<Columns> values_from_json(const Json& value);

Refusal version_changed(const Command& command, std::int64_t expected, const std::string& current);
Refusal record_missing(const Command& command, const RowChange& change);

}  // namespace holdfast::receivers
