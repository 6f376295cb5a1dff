#include "surfaces/cli/challenge_scratch.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/json.h"
#include "os/temporary_folder.h"

namespace holdfast::cli::challenge {
namespace {

namespace fs = std::filesystem;

constexpr int kAnswerLimitMs = 40'000;  // longer than the transition may take
constexpr int kReadyLimitMs = 20'000;
constexpr int kEndLimitMs = 15'000;
constexpr std::chrono::milliseconds kPollPause{5};

// The server ends when the shell's input does, and that ends when this process does.
constexpr const char* kServeScript = R"("$0" --workspace "$1" serve & read -r gone; kill $!; wait $!)";

os::ChildOptions options_in(const std::string& folder) {
  return {.folder = folder, .environment = {{"LC_ALL", "C"}}, .without_prefix = "HOLDFAST_"};
}

}  // namespace

std::string Answer::code() const { return text_member(document.value("error", Json::object()), "code"); }

std::string Answer::message() const {
  const std::string text = text_member(document.value("error", Json::object()), "message");
  const std::string name = code();
  return name.empty() || text.starts_with(name) ? text : name + ": " + text;
}

Json Answer::details() const {
  const Json error = document.value("error", Json::object());
  return error.is_object() ? error.value("details", Json::object()) : Json::object();
}

Result<Answer> answer_of_line(const std::string& line, int status) {
  auto document = parse_json(line);
  if (document && document->is_object()) return Answer{status, std::move(*document)};
  return Refusal(Code::os_failed, "a child answered no document: " + printable(line.substr(0, 200)),
                 Json{{"status", status}});
}

Result<std::unique_ptr<Scratch>> Scratch::make(const std::string& parent) {
  HF_TRY(std::string program, os::this_program());
  HF_TRY(std::string folder, os::make_temporary_folder(parent, "holdfast-challenge"));
  std::unique_ptr<Scratch> scratch(new Scratch(std::move(folder), std::move(program)));
  std::error_code error;
  fs::create_directory(scratch->workspace(), error);
  if (!error) return scratch;
  return Refusal(Code::state_persist_failed, "the scratch workspace cannot be made: " + error.message());
}

Scratch::~Scratch() {
  end_server();
  if (keep_) return;
  std::error_code error;
  fs::remove_all(folder_, error);
}

Result<std::unique_ptr<os::ChildProcess>> Scratch::start(const std::vector<std::string>& arguments) const {
  return os::ChildProcess::start(arguments, options_in(workspace()));
}

void Scratch::note(const std::vector<std::string>& arguments, const os::ChildProcess& child, int status) {
  Json words = Json::array();
  for (const std::string& word : arguments) words.push_back(word == program_ ? "holdfast" : printable(word));
  transcript_.push_back({{"arguments", words},
                         {"pid", child.pid()},
                         {"status", status},
                         {"output", printable(child.output())},
                         {"errors", printable(child.errors())}});
}

Result<Answer> Scratch::ask_in(const std::string& workspace, const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {program_, "--workspace", workspace, "--json"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  HF_TRY(const auto child, start(arguments));
  child->close_input();
  const int status = child->wait(kAnswerLimitMs);
  note(arguments, *child, status);
  return answer_of_line(child->output(), status);
}

Result<Json> Scratch::serve() {
  HF_TRY(server_, start({"/bin/sh", "-c", kServeScript, program_, workspace()}));
  const auto line = server_->read_line(kReadyLimitMs);
  const auto ready = parse_json(line.value_or(""));
  if (!ready || !ready->value("ready", false)) {
    return Refusal(Code::os_failed, "the server did not come up: " + printable(server_->errors()));
  }
  server_pid_ = ready->value("pid", std::int64_t{0});
  return *ready;
}

void Scratch::end_server() {
  if (!server_) return;
  server_->close_input();
  const int status = server_->wait(kEndLimitMs);
  note({program_, "serve"}, *server_, status);
  server_.reset();
}

Result<void> Scratch::put(const std::string& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (file) return {};
  return Refusal(Code::state_persist_failed, "a file of the challenge cannot be written: " + printable(path));
}

std::optional<std::string> Scratch::bytes_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::map<std::string, std::string> Scratch::evidence_segments_in(const std::string& workspace) {
  std::map<std::string, std::string> segments;
  std::error_code error;
  fs::directory_iterator entry(workspace + "/.squad/evidence", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("log-") || !name.ends_with(".jsonl")) continue;
    segments[name] = bytes_at(entry->path().string()).value_or("");
  }
  return segments;
}

// The chain only grows, so a place is a count of bytes through all segments.
std::size_t Scratch::place_in_evidence() const {
  std::size_t place = 0;
  for (const auto& [name, bytes] : evidence_segments()) place += bytes.rfind('\n') + 1;
  return place;
}

std::vector<Json> Scratch::events_since(std::size_t place) const { return events_in(workspace(), place); }

std::vector<Json> Scratch::events_in(const std::string& workspace, std::size_t place) {
  std::string all;
  for (const auto& [name, bytes] : evidence_segments_in(workspace)) all += bytes;
  std::vector<Json> events;
  for (std::size_t end = 0; (end = all.find('\n', place)) != std::string::npos; place = end + 1) {
    if (auto event = parse_json(all.substr(place, end - place))) events.push_back(std::move(*event));
  }
  return events;
}

std::optional<Json> Scratch::await_event(std::size_t place, const std::function<bool(const Json&)>& fits,
                                         int limit_ms) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    for (Json& event : events_since(place)) {
      if (fits(event)) return std::move(event);
    }
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(kPollPause);
  }
}

}  // namespace holdfast::cli::challenge
