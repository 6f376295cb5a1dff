// Untrusted input: the text of a scope, as a client types it and as a record holds it.
// Checked: no crash; a canonical scope parses to itself, and to nothing that leaves the workspace.
//
//   clang++ -std=c++20 -g -fsanitize=fuzzer,address -Isrc -Iinclude fuzz/scope_fuzz.cc
//     src/scope/{scope,lexical}.cc src/base/{json,digest,refusal}.cc src/os/posix/sha256.cc -lcrypto -o scope_fuzz
//   ./scope_fuzz fuzz/corpus/scope
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "holdfast/scope.h"
#include "scope/lexical.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const holdfast::Result<holdfast::lexical::Typed> typed = holdfast::lexical::read_typed(text);
  if (typed && typed->ns == holdfast::Namespace::file) (void)holdfast::lexical::file_scope(typed->segments);

  const holdfast::Result<holdfast::Scope> scope = holdfast::parse_canonical_scope(text);
  if (!scope) return 0;
  HF_ASSERT(scope->full() == text);
  HF_ASSERT(holdfast::overlaps(*scope, *scope));
  HF_ASSERT(!holdfast::is_below(*scope, *scope));
  if (scope->is_file()) {
    for (const std::string& name : holdfast::lexical::split(scope->relative())) {
      HF_ASSERT(name != ".." && name != ".");
    }
  }
  return 0;
}
