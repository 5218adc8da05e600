// The command `completion`: a script by which a shell completes the program's commands and options.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/choice.h"
#include "core/base/speech.h"
#include "experiments/app/commands.h"

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

/// Words that may follow a command: those of the commands below it, and its options.
struct Words {
  std::string path;  ///< of the command: "", "train", "bench conv"
  std::vector<std::string> commands, options;
  std::vector<std::string> valued;  ///< options that a value follows
};

void collect(const Command& command, const std::string& path, std::vector<Words>& all) {
  Words words = {.path = path, .commands = {}, .options = {"--help"}, .valued = {}};
  for (const auto& option : command.options()) {
    words.options.push_back(option.name);
    if (option.takes_value) words.valued.push_back(option.name);
  }
  const auto below = command.subcommands();
  for (const auto& one : below) words.commands.push_back(one.name());
  all.push_back(std::move(words));
  for (const auto& one : below)
    collect(one, path.empty() ? one.name() : path + " " + one.name(), all);
}

/// Also zsh's, which understands bash's completions by its bashcompinit. The command is what stands
/// before the word as far as the program has such one. A word that is none of these is a file, and
/// so is the value of an option.
std::string bash_script(const std::vector<Words>& all) {
  std::string cases, known;
  for (const auto& words : all) {
    cases += fmt::format("    '{}') words='{} {}' valued=' {} ' ;;\n", words.path,
                         fmt::join(words.commands, " "), fmt::join(words.options, " "),
                         fmt::join(words.valued, " "));
    known += fmt::format("'{}'|", words.path);
  }
  known.pop_back();
  return fmt::format(R"(_triptych() {{
  local path='' longer word words='' valued='' at=$COMP_CWORD option
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    longer="${{path:+$path }}$word"
    case "$longer" in {}) path=$longer ;; esac
  done
  case "$path" in
{}  esac
  [[ "${{COMP_WORDS[at]}}" == = ]] || at=$((at - 1))
  [[ "${{COMP_WORDS[at]}}" == = ]] && at=$((at - 1))
  option=${{COMP_WORDS[at]}}
  COMPREPLY=()
  [[ "$valued" == *" $option "* ]] && return
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _triptych triptych
)",
                     known, cases);
}

std::string fish_script(const std::vector<Words>& all) {
  std::string script = "complete -c triptych -e\n";
  for (const auto& words : all) {
    const auto seen =
        words.path.empty()
            ? "not __fish_seen_subcommand_from " + fmt::format("{}", fmt::join(words.commands, " "))
            : "string match -qr -- '^triptych " + words.path + "( |$)' (commandline -cp)";
    for (const auto& command : words.commands)
      script += fmt::format("complete -c triptych -n \"{}\" -a {}\n", seen, command);
    for (const auto& option : words.options) {
      const bool valued = std::ranges::count(words.valued, option) > 0;
      script += fmt::format("complete -c triptych -n \"{}\" -l {}{}\n", seen, option.substr(2),
                            valued ? " -r" : "");
    }
  }
  return script;
}

}  // namespace

void add_completion_command(Command& app) {
  auto shell = std::make_shared<Shell>(Shell::Bash);
  auto command =
      app.add_subcommand("completion", "Print a script by which a shell completes commands");
  command.add_option("shell", *shell, "whose script: source <(triptych completion bash)")
      .required();
  command.callback([shell, app] {
    std::vector<Words> all;
    collect(app, "", all);
    if (*shell == Shell::Fish) return print_text("{}", fish_script(all));
    if (*shell == Shell::Zsh) print_text("autoload -U +X bashcompinit && bashcompinit\n");
    print_text("{}", bash_script(all));
  });
}

}  // namespace app
}  // namespace triptych
