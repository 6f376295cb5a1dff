#include "surfaces/cli/receiver_set.h"

#include "os/child_process.h"
#include "os/stream.h"
#include "receivers/command/command_receiver.h"
#include "receivers/postgres/postgres_receiver.h"
#include "receivers/remote/remote_receiver.h"
#include "receivers/sqlite/sqlite_receiver.h"

namespace holdfast::cli {
namespace {

using receivers::LocalPort;
using receivers::Port;

template <class Open>
auto local(Open open) {
  return [open](const Json& config) -> Result<std::unique_ptr<Port>> {
    HF_TRY(auto receiver, open(config));
    return std::unique_ptr<Port>(std::make_unique<LocalPort>(std::move(receiver)));
  };
}

receivers::ReceiverSet local_receivers() {
  receivers::ReceiverSet set;
  set.add("command", local(receivers::open_command_receiver));
  set.add("sqlite", local(receivers::open_sqlite_receiver));
  set.add("postgres", local(receivers::open_postgres_receiver));
  return set;
}

}  // namespace

std::shared_ptr<const receivers::ReceiverSet> receivers_in_their_processes() {
  auto set = std::make_shared<receivers::ReceiverSet>();
  for (const char* kind : {"command", "sqlite", "postgres"}) {
    set->add(kind, [kind](const Json& config) -> Result<std::unique_ptr<Port>> {
      HF_TRY(const std::string program, os::this_program());
      return receivers::open_remote({program, "challenge", kReceiverRole}, kind, config);
    });
  }
  return set;
}

int run_receiver_role() {
  const auto out = os::take_standard_output();
  if (!out.ok()) return 5;
  os::Handle in(0);
  receivers::serve_receiver(local_receivers(), in, *out);
  in.release();  // the process's, not ours to close
  return 0;
}

}  // namespace holdfast::cli
