// The texts of procedures.h, for one set of columns and their types. Private to the PostgreSQL receiver.
// Threads: pure functions. Errors: none.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "receivers/postgres/statements.h"

namespace holdfast::receivers::postgres {

struct ProcedureText {
  std::string name;                    // without its schema
  std::vector<std::string> arguments;  // each a text; behind them comes its answer
  std::string body;
};
struct ProcedureTexts {
  ProcedureText read, write;
};

struct Type {
  Oid id = 0;
  std::string name;  // quoted, with its schema
};
using Types = std::map<std::string, Type>;  // of each column that is the key's, the version or set
ProcedureTexts procedure_texts(const Statements& statements, const RowChange& like, const Types& types,
                               const std::string& role);
// What a procedure is `sent`, in the order in which it takes it apart.
std::vector<Value> given(const std::string& resource, const std::string& operation_id, const RowChange& change);

// An array of texts in the form that the server reads. request_malformed for a NUL.
Result<std::string> as_array(const std::vector<Value>& values);
// The columns of a row in the form that the server writes; nullopt is NULL. Empty where it is none.
std::vector<std::optional<std::string>> columns_of(const std::string& row);

}  // namespace holdfast::receivers::postgres
