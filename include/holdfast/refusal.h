// Refusal: the typed "no" of Holdfast, and the catalogue of its codes.
//
// Calling sequence: a function that can refuse returns Result<T> (result.h). A caller looks at code(),
// never at the message: codes are stable, messages may improve.
//
// Promises: each code has one effect (what the act did), one next step and one exit status, all from
// src/base/refusals.def, which also makes docs/refusals.md.
// Does not promise: that `details` of one code always has the same members beyond those that docs name.
// Threads: a value type. Source: CONTRACT section 8; the seed's "structured evidence".
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace holdfast {

using Json = nlohmann::json;

enum class Code : std::uint16_t {
#define REFUSAL(code, effect, next, exit, summary, hint) code,
#include "../../src/base/refusals.def"
#undef REFUSAL
};

enum class Effect : std::uint8_t { none, applied, unknown };
enum class Next : std::uint8_t { fix_request, retry, reacquire, reconcile, stop, operator_ };

struct CodeFacts {
  Code code;
  std::string_view name;
  Effect effect;
  Next next;
  int exit_status;
  std::string_view summary;
  std::string_view hint;
};

// The catalogue's row of a code, and the row of a name (nullptr where there is none).
const CodeFacts& facts_of(Code code);
const CodeFacts* facts_named(std::string_view name);
std::size_t code_count();
const CodeFacts& facts_at(std::size_t index);

std::string_view name_of(Effect effect);
std::string_view name_of(Next next);

class [[nodiscard]] Refusal {
 public:
  Refusal(Code code, std::string message, Json details = Json::object());

  Code code() const { return code_; }
  std::string_view code_name() const { return facts_of(code_).name; }
  const std::string& message() const { return message_; }
  const Json& details() const { return details_; }
  Effect effect() const { return effect_; }
  int exit_status() const { return facts_of(code_).exit_status; }
  const std::string& evidence() const { return evidence_; }

  // The same refusal with one more fact, another effect, or the evidence event that records it.
  Refusal&& with(std::string_view key, Json value) &&;
  Refusal&& with_effect(Effect effect) &&;
  Refusal&& with_hint(std::string hint) &&;
  void set_evidence(std::string event_id) { evidence_ = std::move(event_id); }

  // {"error":{"code","message","effect","next","details","evidence"}}
  Json to_json() const;
  static Refusal from_json(const Json& document);

 private:
  Code code_;
  Effect effect_;
  std::string message_;
  std::string hint_;
  Json details_;
  std::string evidence_;
};

}  // namespace holdfast
