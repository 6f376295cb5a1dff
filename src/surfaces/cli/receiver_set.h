// The receivers that this program can open; built by hand, so that reading it shows what can run.
//
// In the server and in a verb each is a process of its own (`challenge receiver-role`, hidden), which opens the real
// one: see receivers/remote/remote_receiver.h for why.
#pragma once
#include <memory>

#include "receivers/receiver_set.h"

namespace holdfast::cli {

inline constexpr const char* kReceiverRole = "receiver-role";

std::shared_ptr<const receivers::ReceiverSet> receivers_in_their_processes();
// The role: serves one receiver on standard input and output until the input ends.
int run_receiver_role();

}  // namespace holdfast::cli
