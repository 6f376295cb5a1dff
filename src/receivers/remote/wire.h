// What travels between a remote receiver and its server. Private to receivers/remote.
#pragma once
#include <optional>
#include <string>

#include "receivers/receiver.h"

namespace holdfast::receivers::wire {

Json current_to_json(const Current& current);
Current current_from_json(const Json& value);
Json delivery_to_json(const Delivery& delivery);
Delivery delivery_from_json(const Json& value);
Json mark_to_json(const std::optional<Generation>& mark);
std::optional<Generation> mark_from_json(const Json& value);

}  // namespace holdfast::receivers::wire
