#include "holdfast/refusal.h"

#include <array>

#include "base/json.h"
#include "holdfast/result.h"

namespace holdfast {
namespace {

constexpr Next kNext_fix_request = Next::fix_request;
constexpr Next kNext_retry = Next::retry;
constexpr Next kNext_reacquire = Next::reacquire;
constexpr Next kNext_reconcile = Next::reconcile;
constexpr Next kNext_stop = Next::stop;
constexpr Next kNext_operator = Next::operator_;

constexpr std::array kCatalogue = {
#define REFUSAL(code, effect, next, exit, summary, hint) \
  CodeFacts{Code::code, #code, Effect::effect, kNext_##next, exit, summary, hint},
#include "refusals.def"
#undef REFUSAL
};

}  // namespace

const CodeFacts& facts_of(Code code) { return kCatalogue[static_cast<std::size_t>(code)]; }

const CodeFacts* facts_named(std::string_view name) {
  for (const CodeFacts& facts : kCatalogue) {
    if (facts.name == name) return &facts;
  }
  return nullptr;
}

std::size_t code_count() { return kCatalogue.size(); }
const CodeFacts& facts_at(std::size_t index) { return kCatalogue.at(index); }

std::string_view name_of(Effect effect) {
  switch (effect) {
    case Effect::none: return "none";
    case Effect::applied: return "applied";
    case Effect::unknown: return "unknown";
  }
  return "unknown";
}

std::string_view name_of(Next next) {
  switch (next) {
    case Next::fix_request: return "fix_request";
    case Next::retry: return "retry";
    case Next::reacquire: return "reacquire";
    case Next::reconcile: return "reconcile";
    case Next::stop: return "stop";
    case Next::operator_: return "operator";
  }
  return "stop";
}

Refusal::Refusal(Code code, std::string message, Json details)
    : code_(code), effect_(facts_of(code).effect), message_(std::move(message)), details_(std::move(details)) {
  HF_ASSERT(details_.is_object());
}

Refusal&& Refusal::with(std::string_view key, Json value) && {
  details_[std::string(key)] = std::move(value);
  return std::move(*this);
}

Refusal&& Refusal::with_effect(Effect effect) && {
  effect_ = effect;
  return std::move(*this);
}

Refusal&& Refusal::with_hint(std::string hint) && {
  hint_ = std::move(hint);
  return std::move(*this);
}

Json Refusal::to_json() const {
  const CodeFacts& facts = facts_of(code_);
  Json error = {{"code", facts.name},
                {"message", message_},
                {"effect", name_of(effect_)},
                {"next", {{"action", name_of(facts.next)}, {"hint", hint_.empty() ? std::string(facts.hint) : hint_}}},
                {"details", details_},
                {"evidence", evidence_.empty() ? Json(nullptr) : Json(evidence_)}};
  return Json{{"error", std::move(error)}};
}

// The document may be anybody's: members of another type count as absent.
Refusal Refusal::from_json(const Json& document) {
  const bool has_error = document.is_object() && document.contains("error") && document["error"].is_object();
  const Json error = has_error ? document["error"] : Json::object();
  const CodeFacts* facts = facts_named(text_member(error, "code"));
  if (facts == nullptr) {
    return Refusal(Code::request_malformed, "an answer with an unknown code", Json{{"answer", document}});
  }
  const bool has_details = error.contains("details") && error["details"].is_object();
  Refusal refusal(facts->code, text_member(error, "message"), has_details ? error["details"] : Json::object());
  const std::string effect = text_member(error, "effect");
  refusal.effect_ = effect == "applied" ? Effect::applied : effect == "unknown" ? Effect::unknown : Effect::none;
  if (error.contains("next")) refusal.hint_ = text_member(error["next"], "hint");
  refusal.evidence_ = text_member(error, "evidence");
  return refusal;
}

}  // namespace holdfast
