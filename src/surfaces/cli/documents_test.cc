#include "surfaces/cli/documents.h"

#include <gtest/gtest.h>

#include "holdfast/refusal.h"
#include "surfaces/cli/text_layout.h"

namespace holdfast::cli {
namespace {

// A line that ends in a backslash goes on in the next.
std::string as_a_shell_reads(std::string text) {
  const std::string broken = " \\\n   ";
  for (std::size_t at = 0; (at = text.find(broken, at)) != std::string::npos;) text.erase(at, broken.size());
  return text;
}

TEST(Help, NamesEveryVerbAndNoneOfALaterReleaseAsWorking) {
  const std::string help = general_help();
  const std::string working = help.substr(0, help.find("not in this release"));
  for (const Command& command : commands()) {
    EXPECT_EQ(working.find("\n  " + std::string(command.name) + " ") != std::string::npos, !command.hidden)
        << command.name;
  }
  for (const std::string_view later : later_verbs()) {
    EXPECT_EQ(working.find("\n  " + std::string(later) + " "), std::string::npos) << later;
  }
}

TEST(Help, FitsEightyColumns) {
  std::string all = general_help();
  for (const Command& command : commands()) {
    const std::string help = help_on(command);
    const std::string read = as_a_shell_reads(help);
    for (const std::string_view example : command.examples) EXPECT_NE(read.find(example), std::string::npos) << example;
    all += help;
  }
  for (std::size_t start = 0; start < all.size();) {
    const std::size_t end = all.find('\n', start);
    EXPECT_LE(width_of(std::string_view(all).substr(start, end - start)), kColumns) << all.substr(start, end - start);
    start = end + 1;
  }
}

TEST(Documents, HaveASectionForEveryVerbAndEveryCode) {
  const std::string page = cli_document();
  for (const Command& command : commands()) {
    EXPECT_EQ(page.find("\n### " + std::string(command.name) + "\n") != std::string::npos, !command.hidden)
        << command.name;
  }
  const std::string refusals = refusals_document();
  for (std::size_t index = 0; index < code_count(); ++index) {
    EXPECT_NE(refusals.find("\n## " + std::string(facts_at(index).name) + "\n"), std::string::npos);
  }
}

TEST(Completions, KnowEveryVerbAndEveryOptionInEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = completions_for(shell);
    ASSERT_TRUE(script);
    for (const Command& command : commands()) {
      if (command.hidden) continue;
      const std::string_view word = command.name.substr(command.name.rfind(' ') + 1);
      EXPECT_NE(script->find(word), std::string::npos) << shell << " " << command.name;
      for (const OptionSpec& option : command.options) {
        EXPECT_NE(script->find(option.name.substr(2)), std::string::npos) << shell << " " << option.name;
      }
    }
  }
  EXPECT_FALSE(completions_for("powershell"));
}

}  // namespace
}  // namespace holdfast::cli
