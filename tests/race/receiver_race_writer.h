// One writer of the race for a row: a process that acquires, reads, delivers, keeps what it sent and sends it again
// under somebody else's tenancy. What it does in which round follows from (seed, number, life) alone; what it was told
// stands in its log, one line each, whenever it is killed.
//
//   granted GENERATION | accepted OPERATION VERSION GENERATION | repeated OPERATION VERSION | refused OPERATION CODE
//   WHEN
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "base/base64.h"
#include "base/digest.h"
#include "base/json.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "support/row_database.h"
#include "support/workbench.h"

namespace holdfast::support {

class RaceWriter {
 public:
  // ROOT LOGS KIND WHERE SEED NUMBER LIFE MILLISECONDS
  explicit RaceWriter(const std::vector<std::string>& arguments)
      : root_(arguments.at(0)),
        logs_(arguments.at(1)),
        rows_(arguments.at(2), arguments.at(3)),
        name_(arguments.at(5) + "." + arguments.at(6)),
        owner_("writer-" + arguments.at(5)),
        seeds_{std::stoul(arguments.at(4)), std::stoul(arguments.at(5)), std::stoul(arguments.at(6))},
        end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(std::stoi(arguments.at(7)))),
        log_(::open((logs_ + "/log-" + name_).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}

  int run() {
    while (!over()) round();
    return 0;
  }

 private:
  bool over() const { return std::chrono::steady_clock::now() >= end_; }
  void note(const std::string& line) const {
    const std::string whole = line + "\n";
    if (::write(log_.fd(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) std::abort();
  }

  // A server that is gone is waited for; whether it did what it was asked is for the next question to find out.
  Result<Json> ask(const std::string& verb, Json arguments) {
    arguments["cwd"] = "/";
    if (!connection_) {
      HF_TRY(const auto folder, os::open_workspace(root_));
      auto connected = os::connect_to_server(folder.squad);
      if (!connected.ok()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return std::move(connected).refusal();
      }
      connection_ = std::make_unique<os::Connection>(std::move(*connected));
    }
    auto answer = call_server(*connection_, Json{{"verb", verb}, {"arguments", std::move(arguments)}}, nullptr, {});
    const bool is_lost = !answer.ok() && (answer.refusal().code() == Code::server_unreachable ||
                                          answer.refusal().code() == Code::server_answer_lost);
    if (is_lost) connection_.reset();
    return answer;
  }

  struct Round {
    unsigned act;  // of twenty
    unsigned commands;
    unsigned late_ones;  // kept commands of anybody that are sent under this tenancy
    bool releases;
    bool by_program;  // through `holdfast receive`
    int stall_ms;
  };
  Round next_round() {
    const auto one_of = [this](unsigned count) { return static_cast<unsigned>(plan_() % count); };
    return {one_of(20),       1 + one_of(4),   one_of(3),
            one_of(100) < 88, one_of(16) == 0, static_cast<int>(1100 + one_of(900))};
  }

  void round() {
    // Each round has its own beginning: how much chance the one before took does not matter.
    std::seed_seq seeds{seeds_[0], seeds_[1], seeds_[2], rounds_++};
    plan_.seed(seeds);
    const Round plan = next_round();
    const auto granted = ask(
        "acquire",
        Json{{"scopes", {rows_.resource()}}, {"owner", owner_}, {"task", "race"}, {"ttl", "1s"}, {"wait_seconds", 3}});
    if (!granted.ok()) return;
    const Json record = (*granted)["leases"][0];
    note("granted " + record["generation"].get<std::string>());
    const Json keys = {{"scope", rows_.resource()},
                       {"owner", record["owner"]},
                       {"task", record["task_id"]},
                       {"generation", record["generation"]},
                       {"started_at", record["started_at"]}};
    for (unsigned count = 0; count < plan.commands; ++count) {
      // One that is only kept is planned on a version to come: when somebody sends it, nothing but its generation is
      // old.
      const bool is_only_kept = plan.act == 17 || plan.act == 18;
      const auto envelope = issue(keys, is_only_kept ? 1 + plan.late_ones + plan_() % 4 : 0);
      if (!envelope) break;
      // Else: send; 14, 15: send twice; 16: keep it and send it at once, too; 17, 18: keep it only; 19: wait too long.
      if (plan.act >= 16 && plan.act <= 18) keep(*envelope);
      if (plan.act == 19) std::this_thread::sleep_for(std::chrono::milliseconds(plan.stall_ms));
      if (!is_only_kept) send(*envelope, plan.by_program, "own");
      if (plan.act == 14 || plan.act == 15) send(*envelope, false, "again");
    }
    for (unsigned count = 0; count < plan.late_ones; ++count) send_a_kept_one();
    if (plan.releases) (void)ask("release", keys);
  }

  std::optional<Json> issue(Json keys, std::uint64_t ahead) {
    const std::string operation = "op-" + name_ + "-" + std::to_string(++issued_);
    keys["operation_id"] = operation;
    keys["precondition"] = std::to_string(parse_u64(rows_.version()).value_or(0) + ahead);
    keys["payload_base64"] = base64_encode(RowDatabase::setting(operation));
    const auto issued = ask("command_issue", keys);
    if (!issued.ok()) return std::nullopt;
    return *issued;
  }

  void send(const Json& envelope, bool by_program, const std::string& when) {
    const std::string operation = text_member(envelope["command"], "operation_id");
    const Json answer = by_program ? sent_by_program(envelope) : sent(envelope);
    if (answer.contains("error")) {
      note("refused " + operation + " " + text_member(answer["error"], "code") + " " + when);
      return;
    }
    const std::string decision = text_member(answer, "decision");
    note(decision + " " + operation + " " + text_member(answer.value("outcome", Json()), "version") + " " +
         text_member(answer, "generation"));
  }

  Json sent(const Json& envelope) {
    const auto answer =
        ask("deliver", Json{{"command", envelope["command"]}, {"payload_base64", envelope["payload_base64"]}});
    return answer.ok() ? *answer : answer.refusal().to_json();
  }

  Json sent_by_program(const Json& envelope) const {
    SpawnOptions options;
    options.folder = root_;
    Child program = spawn({HOLDFAST_PROGRAM, "--workspace", root_, "receive"}, options);
    program.write(dump_ascii(envelope) + "\n");
    program.close_input();
    const auto answer = parse_json(program.read_line());
    return answer ? *answer : Json{{"error", {{"code", "nothing_was_said"}}}};
  }

  // Kept where everybody finds it; whole or not at all.
  void keep(const Json& envelope) const {
    const Json& command = envelope["command"];
    const std::string leaf = text_member(command, "precondition") + "-" + text_member(command, "operation_id");
    std::ofstream(logs_ + "/new-" + leaf, std::ios::binary) << dump_ascii(envelope);
    std::error_code ignored;
    std::filesystem::rename(logs_ + "/new-" + leaf, logs_ + "/kept-" + leaf, ignored);
  }

  // One that the row's version would let in now, where there is one.
  void send_a_kept_one() {
    std::vector<std::string> kept;
    std::vector<std::string> fitting;
    const std::string now = "kept-" + rows_.version() + "-";
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(logs_, ignored)) {
      const std::string leaf = entry.path().filename().string();
      if (leaf.starts_with(now)) fitting.push_back(entry.path().string());
      if (leaf.starts_with("kept-")) kept.push_back(entry.path().string());
    }
    if (kept.empty()) return;
    if (!fitting.empty()) kept = fitting;
    std::ifstream file(kept[plan_() % kept.size()], std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    if (const auto envelope = parse_json(bytes.str())) send(*envelope, false, "late");
  }

  std::string root_;
  std::string logs_;
  RowDatabase rows_;
  std::string name_;
  std::string owner_;
  std::array<unsigned long, 3> seeds_;
  unsigned long rounds_ = 0;
  std::mt19937_64 plan_;
  std::chrono::steady_clock::time_point end_;
  os::Handle log_;
  std::unique_ptr<os::Connection> connection_;
  int issued_ = 0;
};

}  // namespace holdfast::support
