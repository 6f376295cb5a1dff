// The image that hands over: the verb `handoff` of a session (docs/formats/handoff.md has the steps). Private to
// server/.
//
// Promises: the image is the program that the asker runs, taken from the kernel; the one-time secret goes over the
// inherited descriptor alone; no request is lost: those that run are finished, those that were read go over with
// their connection, the others stay in it. A refusal or a failure at any step leaves this server with its guards, its
// records and its clients, and the other image gone.
// The answer: {"ready":true,"pid","session","workspace","replaced"} once the other image serves and this one has
// withdrawn. Errors: handoff_refused, handoff_failed, handoff_in_progress, adoption_secret_invalid.
// Threads: the asker's session.
#pragma once
#include "server/state.h"

namespace holdfast::server {

Result<Json> hand_over(const Shared& state, Client& asker_client, const os::ProcessIdentity& asker);

}  // namespace holdfast::server
