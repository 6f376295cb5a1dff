#include "surfaces/cli/parse.h"

#include <algorithm>

#include "base/json.h"

namespace holdfast::cli {
namespace {

// One walk over the words. `at_` is the next word.
class Parser {
 public:
  explicit Parser(const std::vector<std::string>& words) : words_(words) {}

  Result<Invocation> parse() {
    for (; at_ < words_.size();) {
      const std::string& word = words_[at_++];
      if (only_positionals_ || word.size() < 2 || word[0] != '-') {
        HF_CHECK(take_plain(word));
      } else if (word == "--" && found_.command != nullptr && found_.command->runs_program) {
        found_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
        at_ = words_.size();
      } else if (word == "--") {
        only_positionals_ = true;
      } else {
        HF_CHECK(take_option(word));
      }
    }
    if (found_.help) return help();
    if (found_.command == nullptr) return no_command();
    HF_CHECK(check_complete());
    return std::move(found_);
  }

 private:
  Result<void> take_plain(const std::string& word) {
    if (word == "help" && found_.command == nullptr && group_.empty()) {
      found_.help = true;
      return {};
    }
    if (found_.command != nullptr) {
      found_.positionals.push_back(word);
      return {};
    }
    const std::string name = group_.empty() ? word : group_ + " " + word;
    if (std::ranges::find(later_verbs(), name) != later_verbs().end()) {
      if (found_.help) return {};
      return Refusal(Code::unsupported_here, "`holdfast " + name + "` is not in this release", Json{{"verb", name}})
          .with_hint("see docs/guarantees.md for what this release does");
    }
    found_.command = find_command(name);
    if (found_.command != nullptr) return {};
    if (group_.empty() && is_group(word)) {
      group_ = word;
      return {};
    }
    if (found_.help) return {};
    return usage_refusal("there is no verb `" + printable(name) + "`").with_hint("see `holdfast --help`");
  }

  Result<void> take_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word == "-h" ? "--help" : word.substr(0, equals);
    if (name == "--version" && found_.command == nullptr) {
      found_.command = find_command("version");
      return {};
    }
    const OptionSpec* option = find_option(name);
    if (option == nullptr) return unknown_option(name);
    const std::size_t count = value_count(*option);
    std::vector<std::string> values;
    if (equals != std::string::npos) {
      if (count != 1) return usage_refusal(name + " takes no `=`", found_.command);
      values.push_back(word.substr(equals + 1));
    }
    while (values.size() < count) {
      if (at_ == words_.size()) return usage_refusal(name + " needs " + std::string(option->values), found_.command);
      values.push_back(words_[at_++]);
    }
    return keep(*option, name, std::move(values));
  }

  Result<void> keep(const OptionSpec& option, const std::string& name, std::vector<std::string> values) {
    if (name == "--json") found_.json = true;
    if (name == "--direct") found_.direct = true;
    if (name == "--help") found_.help = true;
    if (is_global(name)) {
      if (name != "--workspace") return {};
      if (found_.workspace) return usage_refusal("--workspace is given twice", found_.command);
      if (values.front().empty()) return usage_refusal("--workspace is empty", found_.command);
      found_.workspace = std::move(values.front());
      return {};
    }
    auto& kept = found_.options[name];
    if (!kept.empty() && !option.repeatable) return usage_refusal(name + " is given twice", found_.command);
    kept.insert(kept.end(), values.begin(), values.end());
    return {};
  }

  static bool is_global(std::string_view name) {
    return std::ranges::any_of(global_options(), [&](const OptionSpec& option) { return option.name == name; });
  }

  const OptionSpec* find_option(std::string_view name) const {
    for (const OptionSpec& option : global_options()) {
      if (option.name == name) return &option;
    }
    if (found_.command == nullptr) return nullptr;
    for (const auto* specs : {&found_.command->options, &found_.command->hidden_options}) {
      for (const OptionSpec& option : *specs) {
        if (option.name == name) return &option;
      }
    }
    return nullptr;
  }

  Result<void> unknown_option(const std::string& name) const {
    if (found_.command != nullptr) {
      const std::string both = std::string(found_.command->name) + " " + name;
      if (std::ranges::find(later_options(), both) != later_options().end()) {
        return Refusal(Code::unsupported_here, "`holdfast " + both + "` is not in this release", Json{{"option", name}})
            .with_hint("see docs/guarantees.md for what this release does");
      }
    }
    return usage_refusal("unknown option " + printable(name), found_.command);
  }

  Result<Invocation> help() {
    found_.topic = found_.command != nullptr ? std::string(found_.command->name) : group_;
    return std::move(found_);
  }

  Result<Invocation> no_command() const {
    if (group_.empty()) return usage_refusal("no verb").with_hint("see `holdfast --help`");
    std::string verbs;
    for (const Command* command : commands_of_group(group_)) {
      verbs += (verbs.empty() ? "" : ", ") + std::string(command->name.substr(group_.size() + 1));
    }
    return usage_refusal("`holdfast " + group_ + "` needs one of: " + verbs);
  }

  Result<void> check_complete() const {
    const Command& command = *found_.command;
    const PositionalCount count = positional_count(command);
    if (found_.positionals.size() < count.least) {
      return usage_refusal("`holdfast " + std::string(command.name) + "` needs " + std::string(command.positional),
                           &command);
    }
    if (found_.positionals.size() > count.most) {
      return usage_refusal("one word too many: " + printable(found_.positionals[count.most]), &command);
    }
    if (command.runs_program && !command.program_is_optional && found_.program.empty()) {
      return usage_refusal("`holdfast " + std::string(command.name) + "` needs a program after --", &command);
    }
    for (const OptionSpec& option : command.options) {
      if (option.required && !found_.has(option.name) && (option.unless.empty() || !found_.has(option.unless))) {
        return usage_refusal("`holdfast " + std::string(command.name) + "` needs " + std::string(option.name) + " " +
                                 std::string(option.values),
                             &command);
      }
    }
    return {};
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  bool only_positionals_ = false;
  std::string group_;
  Invocation found_;
};

}  // namespace

std::optional<std::string> Invocation::value(std::string_view option) const {
  const auto found = options.find(option);
  if (found == options.end() || found->second.empty()) return std::nullopt;
  return found->second.front();
}

Result<Invocation> parse_words(const std::vector<std::string>& words) { return Parser(words).parse(); }

bool asks_for_json(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--json") return true;
    if (word == "--") return false;
  }
  return false;
}

Refusal usage_refusal(const std::string& message, const Command* command) {
  Refusal refusal(Code::usage, message);
  if (command == nullptr) return refusal;
  return std::move(refusal).with_hint("usage: " + usage_line(*command));
}

}  // namespace holdfast::cli
