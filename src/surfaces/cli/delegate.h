// `delegate`: a child command, made from its parent alone: no lease, no workspace, no server.
//
// Promises: the child has the parent's owner, task, generation, epoch, family and issuer and the parent's id, and no
// resource outside of the parent's. Does not promise: that the parent is current; whoever receives the child judges.
// Errors: usage, generation_incomparable, request_malformed, content_unreadable. Source: holdfast/command.h.
#pragma once
#include "surfaces/cli/output.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

int run_delegate(const Invocation& invocation, const Surroundings& surroundings, Output& output);

}  // namespace holdfast::cli
