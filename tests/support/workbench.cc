#include "support/workbench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"

namespace holdfast::support {

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::string Answer::code() const {
  if (!document.is_object() || !document.contains("error") || !document["error"].is_object()) return "";
  return text_member(document["error"], "code");
}

Words Lease::keys() const {
  return {"--owner",      record.at("owner").get<std::string>(),
          "--task",       record.at("task_id").get<std::string>(),
          "--generation", record.at("generation").get<std::string>(),
          "--started-at", record.at("started_at").get<std::string>()};
}

Workbench::Workbench(bool init) {
  if (init) { EXPECT_TRUE(run({"init"}).ok()); }
}

Workbench::~Workbench() { kill_server(); }

Words Workbench::command(const Words& words) const {
  return Words{HOLDFAST_PROGRAM, "--workspace", root(), "--json"} + words;
}

Words Workbench::listing() const {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(root())) {
    if (entry.path().filename() != ".squad") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<Child> Workbench::start(const Words& words, const Environment& environment) const {
  SpawnOptions options;
  options.folder = root();
  options.environment = environment;
  return std::make_unique<Child>(spawn(command(words), options));
}

Answer Workbench::answer_of(Child& child) {
  Answer answer;
  answer.text = child.read_all();
  answer.status = child.wait();
  if (auto document = parse_json(answer.text)) answer.document = std::move(*document);
  return answer;
}

Answer Workbench::run(const Words& words, const std::string& input, const Environment& environment) const {
  const auto child = start(words, environment);
  if (!input.empty()) child->write(input);
  child->close_input();
  return answer_of(*child);
}

void Workbench::serve(const Environment& environment) {
  SpawnOptions options;
  options.folder = root();
  options.environment = environment;
  server_ = std::make_unique<Child>(spawn({HOLDFAST_PROGRAM, "--workspace", root(), "serve"}, options));
  const auto ready = parse_json(server_->read_line());
  EXPECT_TRUE(ready && ready->value("ready", Json()) == Json(true)) << "the server printed no ready line";
}

void Workbench::kill_server() {
  if (!server_) return;
  server_->kill();
  server_->wait();
  server_.reset();
}

Lease Workbench::acquire(const std::string& scope, const std::string& owner, const Words& more) const {
  const Answer answer = run(Words{"acquire", scope, "--owner", owner, "--task", "task-1"} + more);
  EXPECT_TRUE(answer.ok()) << answer.text;
  if (!answer.ok()) return {};
  const Json& record = answer.at("leases").at(0);
  return Lease{record.at("namespace").get<std::string>() + "://" + record.at("resource_id").get<std::string>(), record};
}

Answer Workbench::write(const Lease& lease, const std::string& bytes, const Words& more) const {
  return run(Words{"write", lease.scope} + lease.keys() + Words{"--from", "-"} + more, bytes);
}

Answer Workbench::release(const Lease& lease) const { return run(Words{"release", lease.scope} + lease.keys()); }

Answer Workbench::heartbeat(const Lease& lease, const Words& more) const {
  return run(Words{"heartbeat", lease.scope} + lease.keys() + more);
}

}  // namespace holdfast::support
