// One winner at a time, in order, and no line lost: 8 processes, 500 rounds each, 4 scopes (field reports M38, B101,
// B103, B104).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "os/workspace_folder.h"
#include "server/client.h"
#include "support/text_content.h"
#include "support/workbench.h"

namespace holdfast {
namespace {

using support::RegisterRole;
using support::Workbench;

constexpr int kProcesses = 8;
constexpr int kRounds = 500;
constexpr int kScopes = 4;

Result<Json> ask(os::Connection& connection, const std::string& verb, Json arguments,
                 ContentSource* content = nullptr) {
  arguments["cwd"] = "/";
  return call_server(connection, Json{{"verb", verb}, {"arguments", std::move(arguments)}}, content, {});
}

Json keys_of(const Json& record) {
  return Json{{"owner", record["owner"]},
              {"task", record["task_id"]},
              {"generation", record["generation"]},
              {"started_at", record["started_at"]}};
}

// One worker: acquire, read, add a line under guard, release; a conflict is tried again. Says "ok SCOPE LINE
// GENERATION" for each round that succeeded.
int work(const std::vector<std::string>& arguments) {
  const std::string& root = arguments.at(0);
  const std::string owner = "worker-" + arguments.at(1);
  auto folder = os::open_workspace(root);
  if (!folder.ok()) return 10;
  auto connection = os::connect_to_server(folder->squad);
  if (!connection.ok()) return 11;
  unsigned seed = static_cast<unsigned>(std::stoi(arguments.at(1))) * 7919U + 1U;
  for (int round = 0; round < kRounds;) {
    seed = seed * 1103515245U + 12345U;
    const std::string name = "shared-" + std::to_string((seed >> 16U) % kScopes) + ".txt";
    const std::string scope = "file://project:/" + name;
    auto granted = ask(*connection, "acquire", Json{{"scopes", {scope}}, {"owner", owner}, {"task", "race"}});
    if (!granted.ok()) {
      if (granted.refusal().code() == Code::lease_scope_conflict) continue;
      support::say("trouble " + granted.refusal().message());
      return 12;
    }
    const Json record = (*granted)["leases"][0];
    std::ostringstream line;
    line << owner << " round " << round << " generation " << record["generation"].get<std::string>() << "\n";
    std::string content;
    if (FILE* file = std::fopen((root + "/" + name).c_str(), "rb"); file != nullptr) {
      char piece[65536];
      for (std::size_t count = 0; (count = std::fread(piece, 1, sizeof piece, file)) > 0;) content.append(piece, count);
      std::fclose(file);
    }
    content += line.str();
    Json write = keys_of(record);
    write["scope"] = scope;
    support::TextContent source(content);
    auto written = ask(*connection, "write", write, &source);
    if (!written.ok()) {
      support::say("trouble " + written.refusal().message());
      return 13;
    }
    support::say("ok " + name + " " + line.str().substr(0, line.str().size() - 1));
    Json release = keys_of(record);
    release["scope"] = scope;
    auto released = ask(*connection, "release", release);
    if (!released.ok() || (*released)["content_mismatch"] != Json(false)) {
      support::say("trouble at release");
      return 14;
    }
    ++round;
  }
  return 0;
}

const RegisterRole kWorker("race-worker", work);

TEST(LeaseRace, EveryOkIsInTheFinalContentAndGenerationsRise) {
  Workbench bench;
  for (int scope = 0; scope < kScopes; ++scope) bench.put("shared-" + std::to_string(scope) + ".txt", "");
  bench.serve();
  std::vector<support::Child> workers;
  for (int number = 0; number < kProcesses; ++number) {
    workers.push_back(support::spawn_as("race-worker", {bench.root(), std::to_string(number)}));
  }
  std::map<std::string, std::multiset<std::string>> said;
  int answers = 0;
  for (support::Child& worker : workers) {
    std::istringstream lines(worker.read_all());
    for (std::string line; std::getline(lines, line);) {
      ASSERT_EQ(line.rfind("ok ", 0), 0U) << line;
      const std::size_t space = line.find(' ', 3);
      said[line.substr(3, space - 3)].insert(line.substr(space + 1));
      ++answers;
    }
    EXPECT_EQ(worker.wait(), 0);
  }
  EXPECT_EQ(answers, kProcesses * kRounds);
  std::set<std::uint64_t> generations;
  for (const auto& [name, lines] : said) {
    std::istringstream content(bench.get(name));
    std::multiset<std::string> found;
    std::uint64_t last = 0;
    for (std::string line; std::getline(content, line);) {
      const std::uint64_t generation = std::stoull(line.substr(line.rfind(' ') + 1));
      EXPECT_GT(generation, last) << name;  // in the order of the grants
      last = generation;
      EXPECT_TRUE(generations.insert(generation).second) << "generation " << generation << " twice";
      found.insert(line);
    }
    EXPECT_EQ(found, lines) << name;
  }
  EXPECT_EQ(generations.size(), static_cast<std::size_t>(kProcesses * kRounds));
  EXPECT_TRUE(bench.generations_verify());
  EXPECT_TRUE(bench.evidence_verifies());
  EXPECT_EQ(bench.run({"quarantine", "list"}).at("quarantine").size(), 0U);
}

}  // namespace
}  // namespace holdfast
