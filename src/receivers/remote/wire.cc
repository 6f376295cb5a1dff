#include "receivers/remote/wire.h"

#include "base/json.h"

namespace holdfast::receivers::wire {

Json mark_to_json(const std::optional<Generation>& mark) { return mark ? Json(mark->text()) : Json(); }

std::optional<Generation> mark_from_json(const Json& value) {
  const auto number = exact_u64(value);
  return number ? std::optional(Generation{*number}) : std::nullopt;
}

Json current_to_json(const Current& current) {
  return Json{{"workspace_id", current.issuer.workspace_id},
              {"authority", current.issuer.authority},
              {"workspace_mark", mark_to_json(current.workspace_mark)},
              {"knows_tenancy", current.knows_tenancy},
              {"generation", mark_to_json(current.generation)},
              {"owner", current.owner},
              {"task_id", current.task_id},
              {"epoch", current.epoch.text()},
              {"expired", current.expired},
              {"ended", mark_to_json(current.ended)}};
}

Current current_from_json(const Json& value) {
  Current current;
  current.issuer = {text_member(value, "workspace_id"), text_member(value, "authority")};
  current.workspace_mark = mark_from_json(value.value("workspace_mark", Json()));
  current.knows_tenancy = value.value("knows_tenancy", Json()) == Json(true);
  current.generation = mark_from_json(value.value("generation", Json()));
  current.owner = text_member(value, "owner");
  current.task_id = text_member(value, "task_id");
  current.epoch = Epoch{exact_u64(value.value("epoch", Json())).value_or(0)};
  current.expired = value.value("expired", Json()) == Json(true);
  current.ended = mark_from_json(value.value("ended", Json()));
  return current;
}

Json delivery_to_json(const Delivery& delivery) {
  return Json{{"decision", delivery.decision.decision},
              {"inputs", delivery.decision.inputs},
              {"refusal", delivery.refusal ? delivery.refusal->to_json() : Json()},
              {"outcome", delivery.outcome},
              {"repeated", delivery.repeated},
              {"mark", mark_to_json(delivery.mark)},
              {"observed", delivery.observed}};
}

Delivery delivery_from_json(const Json& value) {
  Delivery delivery;
  delivery.decision = {text_member(value, "decision"), value.value("inputs", Json::object())};
  if (value.value("refusal", Json()).is_object()) delivery.refusal = Refusal::from_json(value["refusal"]);
  delivery.outcome = value.value("outcome", Json());
  delivery.repeated = value.value("repeated", Json()) == Json(true);
  delivery.mark = mark_from_json(value.value("mark", Json()));
  delivery.observed = value.value("observed", Json());
  return delivery;
}

}  // namespace holdfast::receivers::wire
