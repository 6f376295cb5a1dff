// What a test build adds to the server, for the official conformance suite: tools, resources, prompts and methods under
// the names that the suite asks for. The product has no extension, and is none the worse for it.
//
// Calling sequence: run_bridge() with an Extension. takes() and answer() for each request, add_to() for each result
// that the server made itself, take_response() for what the client answers to a request of the extension's. Promises:
// what it takes never reaches the server's own code. Does not promise: that it sees cancelled notifications. Threads:
// answer() on a thread of its own for each request, the others from any. Source: `fixtures/`.
#pragma once
#include <functional>
#include <string>
#include <variant>

#include "surfaces/mcp/era.h"
#include "surfaces/mcp/message.h"
#include "surfaces/mcp/server_link.h"

namespace holdfast::mcp {

// The body of an answer; a Problem has no id yet.
using Outcome = std::variant<Json, Problem>;

class Extension {
 public:
  using Send = std::function<void(const Json& message)>;

  virtual ~Extension() = default;
  virtual bool takes(const Message& request, const Form& form) const = 0;
  virtual Outcome answer(const Message& request, const Form& form, const Send& send,
                         const Cancellation& cancellation) = 0;
  // More tools in tools/list, more capabilities in initialize, and so on.
  virtual void add_to(const std::string& method, Json& result) const = 0;
  virtual void take_response(const Message& response) = 0;
};

}  // namespace holdfast::mcp
