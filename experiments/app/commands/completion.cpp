// `triptych completion`: a script for shell completion of commands, options and values.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/choice.h"
#include "core/base/console.h"
#include "core/base/mapped.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/app/value_names.h"

namespace triptych {

namespace app {
namespace {

enum class Shell : std::uint8_t { Bash, Zsh, Fish };

}  // namespace
}  // namespace app

template <>
inline constexpr auto kNamesOf<app::Shell> = std::to_array<std::pair<app::Shell, std::string_view>>(
    {{app::Shell::Bash, "bash"}, {app::Shell::Zsh, "zsh"}, {app::Shell::Fish, "fish"}});

namespace app {
namespace {

/// An option with the values that a shell offers: words, directories, or else files.
struct OptionWords {
  std::string name;
  bool takes_value = false;
  bool directories = false;
  std::vector<std::string> values;
};

/// Words that may follow a command: those of the commands below it, values of its positional
/// arguments, and its options.
struct Words {
  std::string path;  ///< of the command: "", "train", "bench conv"
  std::vector<std::string> words;
  std::vector<OptionWords> options;
};

std::vector<std::string> values_of(const KnownOption& option) {
  return option.words.empty() ? values_named(option.value) : option.words;
}

/// Words of the program's own commands, which `help` takes.
void collect(const Command& command, std::vector<Words>& all) {
  Words words = {.path = command.path(), .words = {}, .options = {{.name = "--help"}}};
  for (const auto& option : command.options()) {
    words.options.push_back({.name = option.name,
                             .takes_value = option.takes_value,
                             .directories = option.value == "DIR" || option.value == "RUN",
                             .values = values_of(option)});
  }
  const auto below = command.subcommands();
  for (const auto& one : below) words.words.push_back(one.name());
  for (const auto& argument : command.positionals()) {
    const auto values = values_of(argument);
    words.words.insert(words.words.end(), values.begin(), values.end());
  }
  all.push_back(std::move(words));
  for (const auto& one : below) collect(one, all);
}

/// The commands of the program follow `help`.
std::vector<Words> words_of(const Command& app) {
  std::vector<Words> all;
  collect(app, all);
  const auto help = std::ranges::find(all, "help", &Words::path);
  if (help != all.end()) help->words = all.front().words;
  return all;
}

/// Patterns "'train --backend'|'run --backend'" of the options by kind of completion.
using Patterns = std::map<std::string, std::vector<std::string>>;

std::string value_cases(const std::vector<Words>& all) {
  Patterns patterns;
  for (const auto& words : all) {
    for (const auto& option : words.options) {
      if (!option.takes_value) continue;
      const auto action = option.directories ? std::string("directories=1")
                          : option.values.empty()
                              ? std::string("files=1")
                              : fmt::format("values='{}'", fmt::join(option.values, " "));
      patterns[action].push_back(fmt::format("'{} {}'", words.path, option.name));
    }
  }
  std::string cases;
  for (const auto& [action, options] : patterns)
    cases += fmt::format("    {}) {} ;;\n", fmt::join(options, "|"), action);
  return cases;
}

/// Also zsh's, which understands bash's completions by its bashcompinit. The command is the longest
/// prefix of the line that names one. After a comma of a value another value follows. The shell
/// offers files where the script has no words.
std::string bash_script(const std::vector<Words>& all) {
  std::string cases;
  std::vector<std::string> known;
  for (const auto& words : all) {
    auto options =
        mapped<std::string>(words.options, [](const auto& option) { return option.name; });
    cases += fmt::format("    '{}') words='{} {}' ;;\n", words.path, fmt::join(words.words, " "),
                         fmt::join(options, " "));
    known.push_back(fmt::format("'{}'", words.path));
  }
  return fmt::format(R"(_triptych() {{
  local path='' longer word words='' at=$COMP_CWORD option values='' files='' directories=''
  local current=${{COMP_WORDS[COMP_CWORD]}} before=''
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    longer="${{path:+$path }}$word"
    case "$longer" in {}) path=$longer ;; esac
  done
  case "$path" in
{}  esac
  [[ "${{COMP_WORDS[at]}}" == = ]] && current='' || at=$((at - 1))
  [[ "${{COMP_WORDS[at]}}" == = ]] && at=$((at - 1))
  option=${{COMP_WORDS[at]}}
  case "$path $option" in
{}  esac
  COMPREPLY=()
  [[ -n $files ]] && return
  if [[ -n $directories ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -d -- "$current"))
    return
  fi
  if [[ -n $values ]]; then
    [[ $current == *,* ]] && before=${{current%,*}},
    COMPREPLY=($(compgen -P "$before" -W "$values" -- "${{current##*,}}"))
    return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _triptych triptych
)",
                     fmt::join(known, "|"), cases, value_cases(all));
}

std::string fish_value(const OptionWords& option) {
  if (!option.takes_value) return {};
  if (option.directories) return " -x -a \"(__fish_complete_directories)\"";
  if (option.values.empty()) return " -r -F";
  return fmt::format(" -r -a \"{}\"", fmt::join(option.values, " "));
}

std::string fish_script(const std::vector<Words>& all) {
  std::string script = "complete -c triptych -e\n";
  for (const auto& words : all) {
    const auto seen =
        words.path.empty()
            ? fmt::format("not __fish_seen_subcommand_from {}", fmt::join(words.words, " "))
            : "string match -qr -- '^triptych " + words.path + "( |$)' (commandline -cp)";
    for (const auto& word : words.words)
      script += fmt::format("complete -c triptych -n \"{}\" -a {}\n", seen, word);
    for (const auto& option : words.options) {
      script += fmt::format("complete -c triptych -n \"{}\" -l {}{}\n", seen, option.name.substr(2),
                            fish_value(option));
    }
  }
  return script;
}

std::string script_of(Shell shell, const std::vector<Words>& all) {
  if (shell == Shell::Fish) return fish_script(all);
  const auto script = bash_script(all);
  return shell == Shell::Zsh ? "autoload -U +X bashcompinit && bashcompinit\n" + script : script;
}

}  // namespace

void describe_completion(Command& command, Context& context) {
  auto shell = std::make_shared<Shell>(Shell::Bash);
  command.add_option("shell", *shell, "shell that reads the script").required();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([shell, command, &context] {
    const auto script = script_of(*shell, words_of(command.program()));
    if (!context.json) return print_text("{}", script);
    print_document("completion", Json::array({{{"shell", name_of(*shell)}, {"script", script}}}));
  });
}

}  // namespace app
}  // namespace triptych
