// `evidence export`: what somebody else can check of a workspace, offline.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "support/child.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using support::Child;
using support::TemporaryFolder;
using Words = std::vector<std::string>;

class EvidenceExport : public testing::Test {
 protected:
  Json run(Words words, const std::string& input = "") {
    words.insert(words.begin(), {HOLDFAST_PROGRAM, "--json"});
    support::SpawnOptions options;
    options.folder = folder_.path();
    Child child = support::spawn(words, options);
    child.write(input);
    child.close_input();
    const std::string out = child.read_all();
    status_ = child.wait();
    return parse_json(out).value_or(Json::object());
  }

  TemporaryFolder folder_;
  TemporaryFolder elsewhere_;
  int status_ = 0;
};

TEST_F(EvidenceExport, LetsAnybodyRecomputeTheDecisionsOnCommands) {
  run({"init"});
  const std::string scope = "session://deploy";
  run({"receiver", "add", "deploy", "--kind", "command", "--resource", scope});
  folder_.write("a.json", run({"acquire", scope, "--owner", "a", "--task", "t"}).dump());
  folder_.write("job", "job");
  const auto issue = [&](const char* id) {
    return run({"issue", scope, "--lease", "a.json", "--from", "job", "--operation-id", id}).dump() + "\n";
  };
  const std::string first = issue("op-1");
  const std::string late = issue("op-2");
  EXPECT_EQ(run({"receive", "--", "true"}, first)["decision"], "accepted");
  EXPECT_EQ(run({"receive", "--", "true"}, first)["decision"], "repeated");
  run({"release", scope, "--lease", "a.json"});
  run({"acquire", scope, "--owner", "b", "--task", "t"});
  EXPECT_EQ(run({"receive", "--", "true"}, late)["error"]["code"], "stale_lease_generation");

  const std::string package = elsewhere_.at("package");
  run({"evidence", "export", "--to", package});
  ASSERT_EQ(status_, 0);
  const Json found = run({"evidence", "verify", package});
  EXPECT_EQ(found["verified"], true) << found;
  EXPECT_EQ(found["decisions"]["in_chain"], 3);
  for (const Json& text : found["unknown"]) EXPECT_EQ(text.get<std::string>().find("not part of"), std::string::npos);
}

}  // namespace
}  // namespace holdfast
