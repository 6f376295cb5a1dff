// The image that takes over: started by the server that hands over, with one end of a channel
// (docs/formats/handoff.md has the steps).
//
// Calling sequence: adopt() in a process of its own, before it has other threads; it returns as serve() does.
// Promises: authenticates before anything else; touches nothing of the workspace but its own liveness record until it
// is told to take over; where the other side gives up or dies before everything was handed over, leaves without a
// trace; where the other side dies later, finishes by itself once that death is proved. Serves only while it holds
// servers/server.lock, which is the very lock of the server before.
// Errors: adoption_not_expected (no such channel), adoption_secret_invalid, handoff_refused, handoff_failed, those of
// the engine's open.
#pragma once
#include <memory>
#include <string>

#include "holdfast/result.h"
#include "os/handle.h"
#include "receivers/receiver_set.h"

namespace holdfast {

// `channel`: the number of the inherited descriptor. The receivers are opened anew by this process.
Result<int> adopt(const std::string& root, os::Handle::Native channel,
                  std::shared_ptr<const receivers::ReceiverSet> receivers = {});

}  // namespace holdfast
