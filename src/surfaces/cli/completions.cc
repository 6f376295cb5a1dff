#include <algorithm>
#include <array>

#include "surfaces/cli/documents.h"

namespace holdfast::cli {
namespace {

std::string first_word(std::string_view name) { return std::string(name.substr(0, name.find(' '))); }
std::string second_word(std::string_view name) {
  const std::size_t space = name.find(' ');
  return space == std::string_view::npos ? "" : std::string(name.substr(space + 1));
}

std::vector<std::string> first_words() {
  std::vector<std::string> words;
  for (const Command& command : commands()) {
    std::string word = first_word(command.name);
    if (!command.hidden && std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  }
  return words;
}

std::string spaced(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names;
  for (const OptionSpec& option : command.options) names.emplace_back(option.name);
  for (const OptionSpec& option : global_options()) names.emplace_back(option.name);
  return names;
}

std::vector<std::string> second_words(std::string_view group) {
  std::vector<std::string> words;
  for (const Command* command : commands_of_group(group)) words.push_back(second_word(command->name));
  return words;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// Options whose value is a name in the file system.
bool takes_folder(const OptionSpec& option) { return option.values == "DIR"; }
bool takes_file(const OptionSpec& option) {
  return option.values == "FILE" || option.values == "FILE|-" || option.values == "PATH|-";
}

// Every option of the table, once by name.
std::vector<OptionSpec> all_options() {
  std::vector<OptionSpec> all = global_options();
  for (const Command& command : commands()) {
    for (const OptionSpec& option : command.options) {
      const bool known = std::ranges::any_of(all, [&](const OptionSpec& other) { return other.name == option.name; });
      if (!known) all.push_back(option);
    }
  }
  return all;
}

std::string bash_values() {
  std::string folders;
  std::string files;
  std::string texts;
  std::string out;
  for (const OptionSpec& option : all_options()) {
    if (option.values.empty()) continue;
    std::string& list = takes_folder(option) ? folders : takes_file(option) ? files : texts;
    if (!option.choices.empty()) {
      out += "    " + std::string(option.name) + ") COMPREPLY=($(compgen -W '" + spaced(split(option.choices, '|')) +
             "' -- \"$current\")); return ;;\n";
    } else {
      list += (list.empty() ? "" : "|") + std::string(option.name);
    }
  }
  out += "    " + folders + ") compopt -o filenames; COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n";
  out += "    " + files + ") compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n";
  return out + "    " + texts + ") return ;;\n";
}

std::string bash_script() {
  std::string out =
      "# bash completion for holdfast, made by `holdfast completions bash`\n"
      "_holdfast() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb= name= at word\n"
      "  COMPREPLY=()\n"
      "  for ((at = 1; at < COMP_CWORD; ++at)); do\n"
      "    word=${COMP_WORDS[at]}\n"
      "    case $word in\n"
      "      --workspace) ((++at)) ;;\n"
      "      -*) ;;\n"
      "      *) if [[ -z $verb ]]; then verb=$word; name=$word\n"
      "         elif [[ $name == \"$verb\" ]]; then name=\"$verb $word\"; fi ;;\n"
      "    esac\n"
      "  done\n"
      "  case $previous in\n" +
      bash_values() +
      "  esac\n"
      "  if [[ -z $verb && $current != -* ]]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      spaced(first_words()) +
      "' -- \"$current\")); return\n"
      "  fi\n"
      "  if [[ $current != -* ]]; then\n"
      "    case $name in\n";
  for (const std::string& word : first_words()) {
    if (is_group(word)) {
      out += "      " + word + ") COMPREPLY=($(compgen -W '" + spaced(second_words(word)) +
             "' -- \"$current\")); return ;;\n";
    }
  }
  out +=
      "      completions) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$current\")); return ;;\n"
      "    esac\n"
      "    compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); return\n"
      "  fi\n"
      "  local options='--workspace --json --direct --help'\n"
      "  case $name in\n";
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    const std::string name(command.name);
    const std::string pattern = second_word(name).empty() ? "'" + name + "'|'" + name + " '*" : "'" + name + "'";
    out += "    " + pattern + ") options='" + spaced(option_names(command)) + "' ;;\n";
  }
  return out + "  esac\n  COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n}\ncomplete -F _holdfast holdfast\n";
}

// Inside single quotes; zsh's descriptions also end at a bracket and a colon.
std::string quoted(std::string_view text, std::string_view also_escaped = "") {
  std::string out;
  for (const char byte : text) {
    if (byte == '\'') {
      out += "'\\''";
    } else {
      if (also_escaped.find(byte) != std::string_view::npos) out += '\\';
      out += byte;
    }
  }
  return out;
}

std::string zsh_option(const OptionSpec& option) {
  std::string out = "'" + std::string(option.repeatable ? "*" : "") + std::string(option.name) + "[" +
                    quoted(option.summary, "[]:\\") + "]";
  for (const std::string& value : split(option.values, ' ')) {
    if (value.empty()) break;
    out += ":" + quoted(value, ":") + ":";
    if (!option.choices.empty()) out += "(" + spaced(split(option.choices, '|')) + ")";
    if (takes_folder(option)) out += "_files -/";
    if (takes_file(option)) out += "_files";
  }
  return out + "'";
}

std::string zsh_arguments(const Command& command) {
  std::string out = "_arguments";
  for (const OptionSpec& option : command.options) out += " " + zsh_option(option);
  for (const OptionSpec& option : global_options()) out += " " + zsh_option(option);
  if (command.positional == "SHELL") return out + " '1:shell:(bash zsh fish)'";
  if (command.positional.starts_with("SCOPE")) return out + " '*:scope:_files'";
  if (command.positional == "[PACKAGE]") return out + " '1:package:_files -/'";
  return out;
}

std::string zsh_described(const std::string& variable, const std::vector<std::pair<std::string, std::string>>& words) {
  std::string out = "local -a " + variable + "; " + variable + "=(";
  for (const auto& [word, summary] : words) out += " '" + word + ":" + quoted(summary, ":") + "'";
  return out + ")";
}

std::string zsh_script() {
  std::string out =
      "#compdef holdfast\n# zsh completion for holdfast, made by `holdfast completions zsh`\n_holdfast() {\n";
  std::vector<std::pair<std::string, std::string>> verbs;
  for (const std::string& word : first_words()) {
    const Command* command = find_command(word);
    verbs.emplace_back(word, command != nullptr ? std::string(command->summary) : spaced(second_words(word)));
  }
  out +=
      "  local at=2 word\n"
      "  while (( at < CURRENT )); do\n"
      "    word=$words[at]\n"
      "    if [[ $word == --workspace ]]; then (( at += 2 )); elif [[ $word == -* ]]; then (( ++at )); else break; fi\n"
      "  done\n"
      "  if (( at >= CURRENT )); then\n    " +
      zsh_described("verbs", verbs) + "\n    if [[ $words[CURRENT] == -* ]]; then\n      _arguments";
  for (const OptionSpec& option : global_options()) out += " " + zsh_option(option);
  out +=
      "\n    else\n      _describe verb verbs\n    fi\n    return\n  fi\n  shift $(( at - 1 )) words; (( CURRENT -= at "
      "- 1 ))\n"
      "  case $words[1] in\n";
  for (const std::string& word : first_words()) {
    if (!is_group(word)) {
      out += "    " + word + ") " + zsh_arguments(*find_command(word)) + " ;;\n";
      continue;
    }
    std::vector<std::pair<std::string, std::string>> seconds;
    std::string cases;
    for (const Command* command : commands_of_group(word)) {
      const std::string second = second_word(command->name);
      seconds.emplace_back(second, std::string(command->summary));
      cases += "          " + second + ") " + zsh_arguments(*command) + " ;;\n";
    }
    out += "    " + word + ")\n      if (( CURRENT == 2 )); then\n        " + zsh_described("verbs", seconds) +
           "\n        _describe verb verbs\n      else\n        shift words; (( --CURRENT ))\n        case $words[1] "
           "in\n" +
           cases + "        esac\n      fi ;;\n";
  }
  return out +
         "  esac\n}\nif [[ $funcstack[1] == _holdfast ]]; then _holdfast \"$@\"; else compdef _holdfast holdfast; fi\n";
}

std::string fish_option(const OptionSpec& option, const std::string& condition) {
  std::string out = "complete -c holdfast -n \"" + condition + "\" -l " + std::string(option.name.substr(2));
  if (!option.values.empty()) out += " -r";
  if (!option.choices.empty()) out += " -x -a '" + spaced(split(option.choices, '|')) + "'";
  if (takes_folder(option)) out += " -x -a '(__fish_complete_directories)'";
  if (!option.values.empty() && option.choices.empty() && !takes_folder(option) && !takes_file(option)) out += " -f";
  std::string summary;
  for (const char byte : option.summary) summary += byte == '\'' ? std::string("\\'") : std::string(1, byte);
  return out + " -d '" + summary + "'\n";
}

std::string fish_script() {
  std::string out = "# fish completion for holdfast, made by `holdfast completions fish`\n";
  for (const OptionSpec& option : global_options()) out += fish_option(option, "true");
  const std::string no_verb = "not __fish_seen_subcommand_from " + spaced(first_words());
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    const std::string first = first_word(command.name);
    const std::string second = second_word(command.name);
    std::string summary;
    for (const char byte : command.summary) summary += byte == '\'' ? std::string("\\'") : std::string(1, byte);
    std::string seen = "__fish_seen_subcommand_from " + first;
    if (second.empty()) {
      out += "complete -c holdfast -f -n \"" + no_verb + "\" -a " + first + " -d '" + summary + "'\n";
    } else {
      const std::string no_second = seen + "; and not __fish_seen_subcommand_from " + spaced(second_words(first));
      out += "complete -c holdfast -f -n \"" + no_second + "\" -a " + second + " -d '" + summary + "'\n";
      seen += "; and __fish_seen_subcommand_from " + second;
    }
    for (const OptionSpec& option : command.options) out += fish_option(option, seen);
    if (command.positional == "SHELL") out += "complete -c holdfast -f -n \"" + seen + "\" -a 'bash zsh fish'\n";
  }
  for (const std::string& word : first_words()) {
    if (is_group(word)) out += "complete -c holdfast -f -n \"" + no_verb + "\" -a " + word + "\n";
  }
  return out;
}

}  // namespace

std::optional<std::string> completions_for(const std::string& shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return std::nullopt;
}

}  // namespace holdfast::cli
