// A workspace whose server hands over to new images of itself, which are nobody's children: at the end every server
// that still runs there is ended.
#pragma once
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "lease/liveness.h"
#include "os/control_folder.h"
#include "os/process.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "support/workbench.h"

namespace holdfast::support {

class HandoffGround {
 public:
  HandoffGround() = default;
  ~HandoffGround() {
    for (const std::int64_t pid : server_pids()) ::kill(static_cast<pid_t>(pid), SIGKILL);
  }
  HandoffGround(const HandoffGround&) = delete;
  HandoffGround& operator=(const HandoffGround&) = delete;

  Workbench bench;

  Answer replace() const { return bench.run({"serve", "--replace"}); }

  // Of every server process that lives and has a record here.
  std::vector<std::int64_t> server_pids() const {
    std::vector<std::int64_t> pids;
    const auto folder = os::open_workspace(bench.root());
    const auto files = folder.ok() ? os::open_control_folder(folder->squad)
                                   : Result<std::unique_ptr<os::ControlFolder>>(folder.refusal());
    if (!files.ok()) return pids;
    const std::vector<std::string> names = (*files)->list("servers").value();
    for (const std::string& name : names) {
      if (!name.ends_with(".json")) continue;
      const auto text = (*files)->read("servers/" + name);
      const auto record = text.ok() && text->has_value() ? parse_json(**text) : std::nullopt;
      if (!record) continue;
      const auto process = os::ProcessIdentity::from_json(record->value("process", Json()));
      if (os::liveness_of(process) == os::Liveness::alive) pids.push_back(process.pid);
    }
    return pids;
  }
  bool is_served() const { return server_lives(os::open_workspace(bench.root())->squad); }
  os::Connection connect() const {
    return std::move(os::connect_to_server(os::open_workspace(bench.root())->squad)).value();
  }
  Json leases() const { return bench.run({"leases"}).document.value("leases", Json::array()); }
  // Whether every lease is held by this process, alive, and enforced.
  testing::AssertionResult all_held_by(std::int64_t pid) const {
    for (const Json& lease : leases()) {
      const bool held = lease.at("holder").at("pid") == pid && lease.at("liveness").at("holder") == "alive" &&
                        lease.at("os_lock").at("enforced") == true;
      if (!held) return testing::AssertionFailure() << lease.dump();
    }
    return testing::AssertionSuccess();
  }
  // A program that has never heard of leases appends to the file; its bytes must not stay at the name.
  bool lets_hostile_bytes_in(const std::string& name) const {
    const std::string before = bench.get(name);
    Child writer = spawn({"sh", "-c", "echo EVIL >> \"$1\"", "sh", bench.at(name)});
    EXPECT_EQ(writer.wait(30'000), 0);
    return bench.get(name) != before;
  }
};

}  // namespace holdfast::support
