// A handoff at a glance: may it be closed, and if not, what closes each thing in the way.
#include "base/json.h"
#include "surfaces/cli/print.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

Json part(const Json& document, const char* name) {
  return document.is_object() ? document.value(name, Json()) : Json();
}

std::string who(const Json& owner) {
  if (!owner.is_object()) return "nobody yet";
  std::string text =
      member(owner, "owner") + ", task " + member(owner, "task_id") + ", generation " + member(owner, "generation");
  if (owner.contains("ready")) text += member(owner, "ready") == "yes" ? ", ready" : ", NOT ready";
  if (const std::string ended = member(owner, "ended_by"); !ended.empty()) text += ", ended by " + ended;
  return text;
}

std::string old_owner_state(const Json& ended) {
  if (!ended.is_object()) return "still holds it";
  std::string text = "ended by " + words_of(member(ended, "ended_by"));
  if (const std::string refused = member(ended, "refused"); !refused.empty())
    text += "; refused since (" + refused + ")";
  return text;
}

std::string receivers_line(const Json& receivers) {
  if (!receivers.is_array() || receivers.empty()) return "none registered";
  std::string text;
  for (const Json& one : receivers) {
    text +=
        (text.empty() ? "" : ", ") + member(one, "name") + (member(one, "fenced") == "yes" ? " fenced" : " NOT fenced");
  }
  return text;
}

// Of what is out, what can still act.
std::string counted(const Json& in_the_way) {
  std::string text;
  for (const auto& [what, one] :
       {std::pair{"lease_held", "lease"}, {"act_unclassified", "act"}, {"command_unclassified", "command"}}) {
    std::size_t count = 0;
    for (const Json& entry : in_the_way) count += member(entry, "what") == what ? 1U : 0U;
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + one + (count == 1 ? "" : "s");
  }
  return text.empty() ? "nothing" : text;
}

std::string accepted_words(const Json& accepted) {
  std::string text;
  if (!accepted.is_object()) return text;
  for (const auto& [id, reason] : accepted.items()) {
    text += (text.empty() ? "" : ", ") + plain(id) + ": " + human_scalar(reason);
  }
  return text;
}

std::string human_handoff(const Json& handoff) {
  const Json in_the_way = part(handoff, "in_the_way");
  const bool is_open = member(handoff, "state") == "open";
  const std::string verdict = !is_open             ? "closed at " + display_time(member(handoff, "closed_at"))
                              : in_the_way.empty() ? "OPEN, and can be closed"
                              : in_the_way.size() == 1
                                  ? "OPEN: 1 thing stands in the way"
                                  : "OPEN: " + std::to_string(in_the_way.size()) + " things stand in the way";
  std::string out = paragraph(display_scope(handoff) + "  ", verdict);
  const std::string first = member(handoff, "first_accepted_generation");
  out += name_value_lines({{"from", who(part(handoff, "from"))},
                           {"", old_owner_state(part(handoff, "old_owner_ended"))},
                           {"to", who(part(handoff, "new_owner"))},
                           {"first accepted", first.empty() || first == "-" ? "nothing yet" : "generation " + first},
                           {"receivers", receivers_line(part(handoff, "receivers"))},
                           {"still out", counted(in_the_way.is_array() ? in_the_way : Json::array())},
                           {"unknown is for", member(handoff, "reconciliation_owner")},
                           {"look again at", member(handoff, "review_trigger")}});
  const std::string accepted = accepted_words(part(handoff, "accepted"));
  if (!accepted.empty()) out += name_value_lines({{"answered for", accepted}});
  std::size_t number = 0;
  for (const Json& entry : in_the_way.is_array() ? in_the_way : Json::array()) {
    out += paragraph("  " + std::to_string(++number) + ". ", member(entry, "why"));
    out += paragraph("     closed by ", member(entry, "closes_with"));
  }
  return out;
}

}  // namespace

std::string human_handoffs(const Json& document) {
  const Json handoffs = part(document, "handoffs");
  if (!handoffs.is_array()) return human_document(document);
  if (handoffs.empty()) return "no handoff was opened\n";
  std::string out;
  for (const Json& handoff : handoffs) out += (out.empty() ? "" : "\n") + human_handoff(handoff);
  return out;
}

}  // namespace holdfast::cli
