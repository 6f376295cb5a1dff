#include "surfaces/cli/challenge_stream.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "base/json.h"

namespace holdfast::cli::challenge {
namespace {

using Words = std::vector<std::string>;

constexpr int kStartLimitMs = 10'000;
constexpr int kCallLimitMs = 20'000;
constexpr std::chrono::milliseconds kPollPause{20};
constexpr std::size_t kSocketPathMax = 100;  // the system takes 107 bytes
constexpr const char* kStream = "holdfast";
constexpr const char* kGroup = "receivers";
constexpr const char* kField = "envelope";
// Ends with this process: the shell waits for the end of its input.
constexpr const char* kServeScript = R"("$0" "$@" & read -r gone; kill $!; wait $!)";

struct Item {
  std::string id;
  std::string line;
};

bool is_id(const std::string& text) {
  const std::size_t dash = text.find('-');
  return dash != std::string::npos && dash > 0 && text.find_first_not_of("0123456789-") == std::string::npos;
}

// Of redis-cli --raw: an item is its id, its field's name and its field, a line each.
std::vector<Item> items_in(const std::string& printed) {
  std::vector<std::string> lines;
  std::istringstream text(printed);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  std::vector<Item> items;
  for (std::size_t at = 0; at + 2 < lines.size(); ++at) {
    if (is_id(lines[at]) && lines[at + 1] == kField) items.push_back({lines[at], lines[at + 2]});
  }
  return items;
}

class RedisQueue : public Queue {
 public:
  explicit RedisQueue(Scratch& scratch) : scratch_(scratch), socket_(scratch.aside("redis.sock")) {}
  ~RedisQueue() override {
    if (!server_) return;
    server_->close_input();
    server_->wait(kCallLimitMs);
  }

  Result<void> start() {
    HF_TRY(server_, scratch_.start({"/bin/sh", "-c", kServeScript, "redis-server", "--port", "0", "--unixsocket",
                                    socket_, "--save", "", "--appendonly", "no", "--dir", scratch_.folder()}));
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kStartLimitMs);
    for (;;) {
      const auto answer = call({"PING"}, false);
      if (answer.ok() && answer->starts_with("PONG")) break;
      if (std::chrono::steady_clock::now() >= end) return Refusal(Code::os_failed, "redis-server does not answer");
      std::this_thread::sleep_for(kPollPause);
    }
    HF_TRY(const std::string about, call({"INFO", "server"}, false));
    const std::size_t at = about.find("redis_version:");
    if (at != std::string::npos) version_ = about.substr(at + 14, about.find_first_of("\r\n", at) - at - 14);
    HF_CHECK(call({"XGROUP", "CREATE", kStream, kGroup, "$", "MKSTREAM"}));
    return {};
  }

  std::string what() const override { return "a Redis stream (Redis " + version_ + ", private, no port)"; }
  Result<void> send(const std::string& line) override {
    HF_CHECK(call({"XADD", kStream, "*", kField, line}));
    return {};
  }
  Result<std::vector<std::string>> take(const std::string& consumer) override {
    return taken(consumer, {"XREADGROUP", "GROUP", kGroup, consumer, "COUNT", "100", "STREAMS", kStream, ">"});
  }
  Result<void> acknowledge(const std::string& consumer) override {
    Words words = {"XACK", kStream, kGroup};
    for (const std::string& id : held_[consumer]) words.push_back(id);
    held_.erase(consumer);
    if (words.size() == 3) return {};
    HF_CHECK(call(words));
    return {};
  }
  Result<std::vector<std::string>> take_over(const std::string& consumer) override {
    return taken(consumer, {"XAUTOCLAIM", kStream, kGroup, consumer, "0", "0-0", "COUNT", "100"});
  }

 private:
  Result<std::vector<std::string>> taken(const std::string& consumer, const Words& words) {
    HF_TRY(const std::string printed, call(words));
    std::vector<std::string> lines;
    for (const Item& item : items_in(printed)) {
      held_[consumer].push_back(item.id);
      lines.push_back(item.line);
    }
    return lines;
  }

  Result<std::string> call(const Words& words, bool is_noted = true) {
    Words all = {"redis-cli", "-s", socket_, "--raw"};
    all.insert(all.end(), words.begin(), words.end());
    HF_TRY(const auto child, scratch_.start(all));
    child->close_input();
    const int status = child->wait(kCallLimitMs);
    if (is_noted) scratch_.note(all, *child, status);
    // redis-cli ends with 0 where the server answered with an error.
    const std::string& said = child->output();
    for (const char* error : {"ERR", "NOGROUP", "WRONGTYPE", "BUSYGROUP", "Could not", "NOPERM", "MISCONF"}) {
      if (said.starts_with(error)) return Refusal(Code::os_failed, "redis: " + printable(said.substr(0, 200)));
    }
    if (status == 0) return said;
    return Refusal(Code::os_failed, "redis-cli failed: " + printable((said + child->errors()).substr(0, 200)));
  }

  Scratch& scratch_;
  std::string socket_;
  std::string version_ = "of an unknown version";
  std::unique_ptr<os::ChildProcess> server_;
  std::map<std::string, Words> held_;  // ids, by consumer
};

class FileQueue : public Queue {
 public:
  FileQueue(std::string path, std::string why) : path_(std::move(path)), why_(std::move(why)) {}
  std::string what() const override { return "a file of lines, because " + why_; }
  Result<void> send(const std::string& line) override {
    return Scratch::put(path_, Scratch::bytes_at(path_).value_or("") + line + "\n");
  }
  Result<std::vector<std::string>> take(const std::string& consumer) override {
    std::istringstream text(Scratch::bytes_at(path_).value_or("").substr(read_to_));
    for (std::string line; std::getline(text, line);) {
      read_to_ += line.size() + 1;
      held_[consumer].push_back(line);
    }
    return held_[consumer];
  }
  Result<void> acknowledge(const std::string& consumer) override {
    held_.erase(consumer);
    return {};
  }
  Result<std::vector<std::string>> take_over(const std::string& consumer) override {
    std::vector<std::string> all;
    for (const auto& [holder, lines] : held_) all.insert(all.end(), lines.begin(), lines.end());
    held_.clear();
    held_[consumer] = all;
    return all;
  }

 private:
  std::string path_;
  std::string why_;
  std::size_t read_to_ = 0;
  std::map<std::string, std::vector<std::string>> held_;
};

bool is_installed(Scratch& scratch, const std::string& program) {
  const auto child = scratch.start({program, "--version"});
  if (!child.ok()) return false;
  (*child)->close_input();
  return (*child)->wait(kCallLimitMs) == 0;
}

}  // namespace

Result<std::unique_ptr<Queue>> Queue::open(Scratch& scratch) {
  const auto file = [&scratch](const std::string& why) -> std::unique_ptr<Queue> {
    return std::make_unique<FileQueue>(scratch.aside("queue"), why);
  };
  for (const char* program : {"redis-server", "redis-cli"}) {
    if (!is_installed(scratch, program)) return file(std::string(program) + " is not installed");
  }
  if (scratch.aside("redis.sock").size() > kSocketPathMax) return file("the scratch folder's path is too long");
  auto redis = std::make_unique<RedisQueue>(scratch);
  HF_CHECK(redis->start());
  return std::unique_ptr<Queue>(std::move(redis));
}

}  // namespace holdfast::cli::challenge
