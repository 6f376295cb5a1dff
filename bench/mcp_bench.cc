// `holdfast mcp` as its clients see it: tool calls a second and how long each took, over one bridge and over 64 at
// once, what a bridge and its session take of the memory, and how long a bridge needs to be there.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/json.h"
#include "ground.h"

namespace holdfast {
namespace {

using bench::Ground;
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr int kCallsABridge = 32;

class Bridge {
 public:
  explicit Bridge(int number) : number_(number), child_(spawn()) {
    ask("initialize", {{"protocolVersion", "2025-11-25"},
                       {"capabilities", Json::object()},
                       {"clientInfo", {{"name", "bench"}, {"version", "1"}}}});
  }
  Json ask(const std::string& method, const Json& params) {
    child_.write(dump_ascii({{"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}, {"params", params}}) + "\n");
    const std::string line = child_.read_line();
    auto answer = parse_json(line);
    if (!answer || !answer->contains("result") || (*answer)["result"].value("isError", false)) {
      std::fprintf(stderr, "%s: %s\n", method.c_str(), line.substr(0, 500).c_str());
      std::abort();
    }
    return std::move((*answer)["result"]);
  }
  Json call(const std::string& tool, const Json& arguments) {
    return ask("tools/call", {{"name", tool}, {"arguments", arguments}})["structuredContent"];
  }
  // The keys of this bridge's own lease.
  const Json& keys() {
    if (keys_.is_null()) {
      const std::string name = "bridge-" + std::to_string(number_);
      const Json lease = call("lease_acquire", {{"scope", "project-" + name}, {"owner", name}, {"task", "bench"}});
      keys_ = {{"scope", "project-" + name},
               {"owner", name},
               {"task", "bench"},
               {"generation", lease["leases"][0]["generation"]},
               {"started_at", lease["leases"][0]["started_at"]}};
    }
    return keys_;
  }
  pid_t pid() const { return child_.pid(); }

 private:
  static support::Child spawn() {
    support::SpawnOptions options;
    options.folder = Ground::get().folder().path();
    return support::spawn({HOLDFAST_PROGRAM, "mcp"}, options);
  }
  int number_;
  support::Child child_;
  std::int64_t last_id_ = 0;
  Json keys_;
};

// So many bridges, the same ones for all benchmarks.
std::vector<std::unique_ptr<Bridge>>& bridges(std::size_t count) {
  static std::vector<std::unique_ptr<Bridge>> all;
  while (all.size() < count) all.push_back(std::make_unique<Bridge>(static_cast<int>(all.size())));
  return all;
}

void tool_calls(benchmark::State& state, const std::function<void(Bridge&)>& call) {
  const auto count = static_cast<std::size_t>(state.range(0));
  auto& all = bridges(count);
  for (std::size_t number = 0; number < count; ++number) call(*all[number]);  // each has its lease and its connection
  std::vector<double> micros;
  for (auto _ : state) {
    std::vector<std::vector<double>> took(count);
    const auto began = steady_clock::now();
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < count; ++number) {
      threads.emplace_back([&, number] {
        for (int round = 0; round < kCallsABridge; ++round) {
          const auto start = steady_clock::now();
          call(*all[number]);
          took[number].push_back(duration<double, std::micro>(steady_clock::now() - start).count());
        }
      });
    }
    for (std::thread& one : threads) one.join();
    state.SetIterationTime(duration<double>(steady_clock::now() - began).count());
    for (const auto& one : took) micros.insert(micros.end(), one.begin(), one.end());
  }
  std::sort(micros.begin(), micros.end());
  state.SetItemsProcessed(static_cast<std::int64_t>(micros.size()));  // items_per_second: calls of all bridges together
  state.counters["p50_us"] = micros[micros.size() / 2];
  state.counters["p99_us"] = micros[micros.size() * 99 / 100];
}

void mcp_lease_list(benchmark::State& state) {
  tool_calls(state, [](Bridge& bridge) { bridge.call("lease_list", Json::object()); });
}
void mcp_heartbeat(benchmark::State& state) {
  tool_calls(state, [](Bridge& bridge) { bridge.call("lease_heartbeat", bridge.keys()); });
}
void mcp_file_write_4kib(benchmark::State& state) {
  tool_calls(state, [](Bridge& bridge) {
    Json arguments = bridge.keys();
    arguments["content"] = std::string(4096, 'x');
    bridge.call("file_write", arguments);
  });
}

// Resident and proportional memory of a bridge (most of the resident is the program, shared by all of them), and what
// the server grows by for each session.
void mcp_memory(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const long before = Ground::get().server_resident_kib();
  std::vector<std::unique_ptr<Bridge>> fresh;
  for (auto _ : state) {
    while (fresh.size() < count) fresh.push_back(std::make_unique<Bridge>(1000 + static_cast<int>(fresh.size())));
    for (auto& one : fresh) one->call("lease_list", Json::object());
  }
  double resident = 0;
  double proportional = 0;
  for (const auto& one : fresh) {
    resident += static_cast<double>(bench::resident_kib(one->pid()));
    proportional += static_cast<double>(bench::proportional_kib(one->pid()));
  }
  const auto each = static_cast<double>(count);
  state.counters["bridge_rss_kib"] = resident / each;
  state.counters["bridge_pss_kib"] = proportional / each;
  state.counters["session_kib"] = static_cast<double>(Ground::get().server_resident_kib() - before) / each;
}

// From nothing to the answer to initialize, and to that of a first tool call; the server runs.
void mcp_start(benchmark::State& state) {
  Ground::get();
  for (auto _ : state) {
    const auto began = steady_clock::now();
    Bridge bridge(0);
    if (state.range(0) > 0) bridge.call("lease_list", Json::object());
    state.SetIterationTime(duration<double>(steady_clock::now() - began).count());
  }
}

BENCHMARK(mcp_memory)->Arg(64)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(mcp_lease_list)->Arg(1)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(mcp_heartbeat)->Arg(1)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(mcp_file_write_4kib)->Arg(1)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(mcp_start)->ArgName("first_call")->Arg(0)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
