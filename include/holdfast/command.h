// Command: what an owner asks a receiver to do, and under which tenancy. It travels whole: through queues, retries,
// tool calls and delegation.
//
// Calling sequence: a sender makes one under its tenancy (`exec`, `act prepare`, the library) and passes on its
// canonical form, its environment form (programs) or its header form (queues, HTTP). A receiver reads it back with
// command_from_json, and judges it where the effect happens (src/receivers/receiver.h).
// Promises: the three forms carry every member, and reading one gives the very same command back; canonical() is one
// text for one command. Reading refuses what is missing or malformed, never fills anything in: a generation above all
// (generation_incomparable). delegated() gives a child that can carry no more than its parent: the same resource or one
// below it, the same family and consequence, owner, task, generation, epoch and issuer, and the parent's id.
// Does not promise: that the command is authentic; whoever can write to the queue can write one. The issuer's fields
// are compared, not signed.
// Units: generation and control_epoch are unsigned 64-bit, decimal strings in every form. Threads: a value type.
// Errors: generation_incomparable, request_malformed. Source: CONTRACT section 5; second seed, steps 2 and 3.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/result.h"

namespace holdfast {

struct Issuer {
  std::string workspace_id;
  std::string authority;  // "local"
  bool operator==(const Issuer&) const = default;
};

struct Command {
  std::string operation_id;
  std::string resource;  // full canonical scope
  std::string operation_family;
  std::string consequence_class;
  std::string owner;
  std::string task_id;
  std::uint64_t generation = 0;
  std::uint64_t control_epoch = 0;
  Issuer issuer;
  std::optional<std::string> precondition;  // a preimage's digest, a row's version
  std::optional<std::string> parent_operation_id;
  std::string payload_sha256;  // of the exact bytes that travel beside it

  bool operator==(const Command&) const = default;
  Json to_json() const;
  std::string canonical() const;  // keys sorted bytewise, no white space, ASCII
  // HOLDFAST_COMMAND and one variable for each of scope, owner, task, generation, operation id.
  std::map<std::string, std::string> environment() const;
  // One line for a message header: base64 of the canonical form, under the name kCommandHeader.
  std::string header() const;

  // What a child may be: everything else is taken over.
  struct Child {
    std::string operation_id;
    std::string resource;  // the parent's, or one below it
    std::optional<std::string> precondition;
    std::string payload_sha256;
  };
  Result<Command> delegated(const Child& child) const;
};

constexpr std::string_view kCommandHeader = "Holdfast-Command";

Result<Command> command_from_json(const Json& value);
Result<Command> command_from_header(std::string_view value);
Result<Command> command_from_environment(const std::map<std::string, std::string>& environment);

}  // namespace holdfast
