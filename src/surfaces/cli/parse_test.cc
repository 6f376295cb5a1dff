#include "surfaces/cli/parse.h"

#include <gtest/gtest.h>

#include "support/refused_with.h"
#include "surfaces/cli/documents.h"

namespace holdfast::cli {
namespace {

using support::granted;
using support::refused_with;
using Words = std::vector<std::string>;

TEST(CommandLine, TakesGlobalOptionsBeforeAndAfterTheVerb) {
  for (const Words& words : {Words{"--workspace", "/w", "--json", "--direct", "leases"},
                             Words{"leases", "--direct", "--json", "--workspace=/w"}}) {
    const auto found = parse_words(words);
    ASSERT_TRUE(granted(found));
    EXPECT_TRUE(found->json);
    EXPECT_TRUE(found->direct);
    EXPECT_EQ(found->workspace, "/w");
    EXPECT_EQ(found->command->name, "leases");
  }
}

TEST(CommandLine, RefusesWhatIsNoCommandAsUsage) {
  for (const Words& words : {Words{},
                             Words{"--json"},
                             Words{"no-such-verb"},
                             Words{"acquire"},
                             Words{"acquire", "a"},
                             Words{"acquire", "a", "--owner", "o"},
                             Words{"acquire", "a", "--owner", "o", "--task", "t", "--no-such-option"},
                             Words{"scope"},
                             Words{"scope", "a", "b"},
                             Words{"epoch"},
                             Words{"epoch", "no-such"},
                             Words{"epoch", "advance"},
                             Words{"generations", "repair"},
                             Words{"leases", "extra"},
                             Words{"write", "a"},
                             Words{"edit", "a"},
                             Words{"acquire", "a", "--owner"},
                             Words{"acquire", "a", "--owner", "o", "--owner", "p", "--task", "t"},
                             Words{"--workspace", "/a", "--workspace", "/b", "leases"},
                             Words{"--workspace", "", "leases"},
                             Words{"--no-such", "leases"},
                             Words{"--json=yes", "leases"},
                             Words{"release", "a", "--force=1"}}) {
    EXPECT_TRUE(refused_with(parse_words(words), Code::usage)) << testing::PrintToString(words);
  }
}

TEST(CommandLine, FindsAWishForJsonEvenWhereTheRestIsWrong) {
  EXPECT_TRUE(asks_for_json({"nonsense", "--json"}));
  EXPECT_FALSE(asks_for_json({"nonsense"}));
  EXPECT_FALSE(asks_for_json({"hold", "a", "--", "program", "--json"}));
}

TEST(CommandLine, TakesTheProgramAfterTwoDashesAsItIs) {
  const auto found = parse_words({"hold", "a", "b", "--owner", "o", "--task", "t", "--", "sh", "--json", "--", "-c"});
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(found->positionals, (Words{"a", "b"}));
  EXPECT_EQ(found->program, (Words{"sh", "--json", "--", "-c"}));
  EXPECT_FALSE(found->json);
  EXPECT_TRUE(refused_with(parse_words({"hold", "a", "--owner", "o", "--task", "t"}), Code::usage));
  EXPECT_TRUE(refused_with(parse_words({"hold", "a", "--owner", "o", "--task", "t", "--"}), Code::usage));
}

TEST(CommandLine, NamesWhatALaterReleaseBringsWithoutDoingAnything) {
  EXPECT_TRUE(refused_with(parse_words({"guardd"}), Code::unsupported_here));
  for (const Words& words : {Words{"receiver", "add", "x"}, {"receiver", "reseed"}, {"act"}, {"handoff", "x"}}) {
    EXPECT_TRUE(refused_with(parse_words(words), Code::usage)) << testing::PrintToString(words);
  }
}

TEST(CommandLine, KeepsEveryByteOfAnArgument) {
  const std::string odd("--\xff=\x01", 5);
  const auto found =
      parse_words({"edit", "bad-\xff", "--lease", "f", "--replace", odd, "--replace", "--replace", "", "\xfe"});
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(found->positionals, Words{"bad-\xff"});
  EXPECT_EQ(found->options.at("--replace"), (Words{odd, "--replace", "", "\xfe"}));
}

TEST(CommandLine, NeverTakesTheNextWordForAnEmptyValue) {
  const auto found = parse_words({"acquire", "--owner=o", "--task=t", "--ttl=", "a", "b"});
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(found->value("--ttl"), "");
  EXPECT_EQ(found->positionals, (Words{"a", "b"}));
}

TEST(CommandLine, KeepsWordsThatOtherParsersTreatSpecially) {
  const auto found =
      parse_words({"acquire", "--owner=a=b", "--task", "-1", "++", "[a,b]", "{}", "-", "leases", "--", "--x"});
  ASSERT_TRUE(granted(found));
  EXPECT_EQ(found->value("--owner"), "a=b");
  EXPECT_EQ(found->value("--task"), "-1");
  EXPECT_EQ(found->positionals, (Words{"++", "[a,b]", "{}", "-", "leases", "--x"}));
}

TEST(CommandLine, HelpNeedsNothingElse) {
  for (const auto& [words, topic] : {std::pair<Words, std::string>{{"--help"}, ""},
                                     {{"-h"}, ""},
                                     {{"acquire", "--help"}, "acquire"},
                                     {{"epoch", "--help"}, "epoch"},
                                     {{"epoch", "advance", "--help"}, "epoch advance"}}) {
    const auto found = parse_words(words);
    ASSERT_TRUE(granted(found));
    EXPECT_TRUE(found->help);
    EXPECT_EQ(found->topic, topic);
  }
}

TEST(CommandLine, ALeaseFileStandsForOwnerAndTaskOfAnAcquire) {
  EXPECT_TRUE(granted(parse_words({"acquire", "a", "--lease", "f"})));
}

// A test build's own options: taken, and in no help, completion or document. A release has none of them
// (tests/mcp/run release-without-fixtures).
TEST(CommandTable, ShowsNoHiddenOption) {
  std::size_t count = 0;
  for (const Command& command : commands()) {
    for (const OptionSpec& option : command.hidden_options) {
      ++count;
      ASSERT_TRUE(granted(parse_words({std::string(command.name), std::string(option.name)})));
      EXPECT_EQ(usage_line(command).find(option.name), std::string::npos) << option.name;
      EXPECT_EQ(cli_document().find(option.name), std::string::npos) << option.name;
    }
  }
  EXPECT_EQ(count, 1U);
  EXPECT_FALSE(granted(parse_words({"status", "--conformance-fixtures"})));
}

TEST(CommandTable, IsWhole) {
  for (const Command& command : commands()) {
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_TRUE(command.hidden || !command.examples.empty()) << command.name;
    EXPECT_EQ(find_command(command.name), &command) << "twice: " << command.name;
    for (const std::string_view example : command.examples) {
      EXPECT_NE(example.find(command.name), std::string_view::npos) << example;
    }
  }
}

}  // namespace
}  // namespace holdfast::cli
