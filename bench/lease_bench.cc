// Whole cycles through a real server process, and the bare durable steps that they are built of. Times are wall-clock
// times of the client; the folder is $TMPDIR or /tmp, so choose the file system with TMPDIR.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "ground.h"
#include "pairs.h"
#include "server/client.h"

namespace holdfast {
namespace {

using bench::ask;
using bench::Ground;
using bench::Pairs;

constexpr std::size_t kKiB = 1024;

class Bytes : public ContentSource {
 public:
  explicit Bytes(std::size_t count, char fill) : left_(count), fill_(fill) {}
  Result<std::size_t> read(char* into, std::size_t size) override {
    const std::size_t count = std::min(size, left_);
    std::fill_n(into, count, fill_);
    left_ -= count;
    return count;
  }

 private:
  std::size_t left_;
  char fill_;
};

Json keys_of(const Json& record, const std::string& scope) {
  return Json{{"scope", scope},
              {"owner", record["owner"]},
              {"task", record["task_id"]},
              {"generation", record["generation"]},
              {"started_at", record["started_at"]}};
}

Json acquire(os::Connection& connection, const std::string& scope, const std::string& owner) {
  return ask(connection, "acquire", Json{{"scopes", {scope}}, {"owner", owner}, {"task", "bench"}})["leases"][0];
}

void bare_append_fdatasync(benchmark::State& state) {
  const int file =
      ::open(Ground::get().folder().at("bare.log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const std::string piece(4 * kKiB, 'x');
  for (auto _ : state) {
    if (::write(file, piece.data(), piece.size()) < 0 || ::fdatasync(file) != 0) state.SkipWithError("no disk");
  }
  ::close(file);
}
BENCHMARK(bare_append_fdatasync)->UseRealTime()->Unit(benchmark::kMicrosecond);

void bare_durable_replace(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const std::string piece(std::min<std::size_t>(size, 256 * kKiB), 'x');
  const std::string root = Ground::get().folder().path();
  const int folder = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (auto _ : state) {
    const int file = ::openat(folder, "bare.new", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    for (std::size_t done = 0; done < size; done += piece.size()) {
      if (::write(file, piece.data(), piece.size()) < 0) state.SkipWithError("no disk");
    }
    ::fsync(file);
    ::close(file);
    ::renameat(folder, "bare.new", folder, "bare.bin");
    ::fsync(folder);
  }
  ::close(folder);
}
BENCHMARK(bare_durable_replace)
    ->Arg(4 << 10)
    ->Arg(1 << 20)
    ->Arg(100 << 20)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void lone_cycle_in_pairs(benchmark::State& state) {
  const auto connection = Ground::get().connect();
  const std::string scope = "file://project:/paired";
  const int file =
      ::open(Ground::get().folder().at("paired.log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const std::string piece(4 * kKiB, 'x');
  Pairs pairs;
  for (auto _ : state) {
    pairs.add(
        state,
        [&] {
          if (::write(file, piece.data(), piece.size()) < 0 || ::fdatasync(file) != 0) state.SkipWithError("no disk");
        },
        [&] { ask(*connection, "release", keys_of(acquire(*connection, scope, "paired"), scope)); });
  }
  pairs.report(state);
  ::close(file);
}
BENCHMARK(lone_cycle_in_pairs)->UseManualTime()->Unit(benchmark::kMicrosecond);

void replacement_in_pairs(benchmark::State& state) {
  constexpr std::size_t kSize = 4 * kKiB;
  const auto connection = Ground::get().connect();
  const std::string scope = "file://project:/paired.bin";
  const Json lease = acquire(*connection, scope, "bench");
  const std::string piece(kSize, 'x');
  const int folder = ::open(Ground::get().folder().path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char fill = 'a';
  Pairs pairs;
  for (auto _ : state) {
    fill = fill == 'z' ? 'a' : static_cast<char>(fill + 1);
    Bytes content(kSize, fill);
    pairs.add(
        state,
        [&] {
          const int file = ::openat(folder, "bare.new", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
          if (::write(file, piece.data(), piece.size()) < 0 || ::fsync(file) != 0) state.SkipWithError("no disk");
          ::close(file);
          ::renameat(folder, "bare.new", folder, "bare.bin");
          ::fsync(folder);
        },
        [&] { ask(*connection, "write", keys_of(lease, scope), &content); });
  }
  ask(*connection, "release", keys_of(lease, scope));
  pairs.report(state);
  ::close(folder);
}
BENCHMARK(replacement_in_pairs)->UseManualTime()->Unit(benchmark::kMicrosecond);

// acquire + release of a scope of its own by each client.
void acquire_release_cycle(benchmark::State& state) {
  static std::atomic<int> number{0};
  const std::string name = "client-" + std::to_string(number.fetch_add(1));
  const auto connection = Ground::get().connect();
  const std::string scope = "file://project:/" + name;
  for (auto _ : state) {
    const Json lease = acquire(*connection, scope, name);
    ask(*connection, "release", keys_of(lease, scope));
  }
  if (state.thread_index() == 0)
    state.counters["server_rss_kib"] = static_cast<double>(Ground::get().server_resident_kib());
}
BENCHMARK(acquire_release_cycle)->Threads(1)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(acquire_release_cycle)->Threads(16)->UseRealTime()->Unit(benchmark::kMicrosecond);

void guarded_replacement(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const auto connection = Ground::get().connect();
  const std::string name = "replaced-" + std::to_string(size);
  const std::string scope = "file://project:/" + name;
  const Json lease = acquire(*connection, scope, "bench");
  char fill = 'a';
  for (auto _ : state) {
    fill = fill == 'z' ? 'a' : static_cast<char>(fill + 1);
    Bytes content(size, fill);
    ask(*connection, "write", keys_of(lease, scope), &content);
  }
  ask(*connection, "release", keys_of(lease, scope));
  state.counters["server_rss_kib"] = static_cast<double>(Ground::get().server_resident_kib());
}
BENCHMARK(guarded_replacement)
    ->Arg(4 << 10)
    ->Arg(1 << 20)
    ->Arg(100 << 20)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace holdfast

BENCHMARK_MAIN();
