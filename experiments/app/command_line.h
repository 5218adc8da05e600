// The program's command line: commands with options that are written into variables. CLI11 stands
// behind these handles, which copy like pointers, and is compiled with command_line.cpp and
// usage.cpp alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/choice.h"
#include "experiments/training/option_value.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace triptych::app {

/// Heading of the options that every command has.
inline constexpr const char* kCommonHeading = "Common options";

/// Condition on the text of an option.
struct Validator {
  std::string range;  ///< in the help: "1 to 8"
  /// Returns the error in a text. Empty: none.
  std::function<std::string(const std::string&)> problem;
  bool of_numbers = false;              ///< of a text that is a list of numbers
  std::vector<std::string> words = {};  ///< all texts that it accepts, if they are few
};

/// Accepts these words.
Validator one_of(std::vector<std::string> words);

/// The number that `text` is, read as an option's value is. Nothing when it is none.
std::optional<double> read_number(const std::string& text);

/// An option of a command. Each member returns it again, for the next.
class Option {
 public:
  Option required();
  Option check(Validator validator);
  /// The help does not show the variable's value, which stands for "not given".
  Option without_default();
  /// Name of the value in the help: "DIR". Without it that of value_names.h.
  Option value(std::string_view name);
  /// A number without a unit is in this one. Others are accepted: "2GiB", "1us".
  Option in(training::Unit unit);
  /// The command writes there, and has a flag
  /// Adds --overwrite, which calls allow_overwriting(). It is refused if the command writes
  /// nothing: if none of these options was given or has a default. Files that any other option
  /// names are read, and so stay (keep_input).
  Option output_file();
  Option output_folder();
  /// Without the option the command has this value, which the help shows.
  Option default_text(const std::string& text);
  /// Exactly this number of values, separated by commas. At most once.
  Option list_of(int count);
  /// One value each time, and as often as one likes.
  Option repeated();
  /// Allowed only together with another option, otherwise refused. `values`: values of that option
  /// that allow it, given or by default. "pipeline*" is a prefix, and one entry of a list with
  /// commas is enough. Without `values` the option must be given.
  Option only_with(const std::string& option, std::vector<std::string> values = {});
  /// The same with any of these given.
  Option only_with_any(std::vector<std::string> options);
  /// The option may stand alone, and then has this value, unless one of `values` follows.
  Option alone_means(const std::string& text, std::vector<std::string> values);
  /// The reverse of only_with: means nothing, and is refused, with it.
  Option not_with(const std::string& option, std::vector<std::string> values = {});

 private:
  friend class Command;
  void value_if_unnamed(std::string_view name);
  Option(CLI::App* app, CLI::Option* option) : app_(app), option_(option) {}

  CLI::App* app_;
  CLI::Option* option_;
};

/// An option or a positional argument of a command.
struct KnownOption {
  std::string name;        ///< with its dashes, or "RUN" for a positional argument
  std::string short_name;  ///< "-v", or empty
  std::string heading;     ///< of its group in the help
  std::string help;
  std::string value;               ///< metavariable such as "DIR" (value_names.h). Empty for a flag
  std::vector<std::string> words;  ///< all values. Empty: too many to list
  std::string range;               ///< of its numbers, "1 to 8"
  std::string default_text;        ///< empty: none
  bool takes_value = true;
  bool of_numbers = false;  ///< its value is a number, or a list of them
  bool required = false;
  bool repeated = false;
  bool output = false;  ///< its value is an output path
  /// Controls the program's messages or overwriting. It is not part of a run or a result.
  bool of_program = false;
};

/// An option on the command line that was read.
struct GivenOption {
  std::string name;                 ///< with its dashes
  std::optional<std::string> text;  ///< of its value. A flag has none
};

/// A command, or the program itself with the commands below it. Variables must live as long as the
/// command line is read. A callback runs when its command was chosen.
class Command {
 public:
  Command() = default;  ///< belongs to no command until it is assigned

  Command add_subcommand(const std::string& name, const std::string& help);
  /// `describe` adds its options and commands when arguments name the command, or when something
  /// lists the commands.
  void add_subcommand(const std::string& name, const std::string& help,
                      std::function<void(Command&)> describe);
  /// For text, which must not be empty, whole numbers, float, double, an optional std::int64_t or
  /// double, and vectors of text or of std::int64_t: those that command_line.cpp names.
  template <typename T>
  Option add_option(const std::string& name, T& value, const std::string& help);
  /// For a value that has a name.
  template <Named E>
  Option add_option(const std::string& name, E& value, const std::string& help) {
    return add_text(
               name, [&value](const std::string& text) { value = value_of<E>(text); },
               [&value] { return std::string(name_of(value)); }, help)
        .check(one_of(names_of<E>()));
  }
  /// The same for a value that may be absent.
  template <Named E>
  Option add_option(const std::string& name, std::optional<E>& value, const std::string& help) {
    return add_text(
               name, [&value](const std::string& text) { value = value_of<E>(text); },
               [&value] { return std::string(value ? name_of(*value) : ""); }, help)
        .check(one_of(names_of<E>()));
  }
  /// For a value with a text: `take` reads it and throws an Error when it is wrong, `present` says
  /// the text of the present value.
  Option add_text(const std::string& name, const std::function<void(const std::string&)>& take,
                  const std::function<std::string()>& present, const std::string& help);
  Option add_flag(const std::string& name, bool& value, const std::string& help);
  /// A flag that makes the value false.
  Option add_flag_off(const std::string& name, bool& value, const std::string& help);
  /// An option that is accepted and has no variable. Use given() and count().
  void add_flag(const std::string& name);
  /// One that was added before.
  Option option(const std::string& name) const;
  /// Options from here on stand under this heading of the help. Empty: under the usual one.
  void begin_group(const std::string& heading = "");
  void callback(std::function<void()> run);
  /// Option::not_with for each of `refused` that the command has.
  void refuse_with(const std::string& option, const std::vector<std::string>& refused);
  /// With `option`, defaults decide which options apply. The command calls require_fitting when it
  /// knows them.
  void fits_later_with(const std::string& option);
  /// Throws InvalidArgument if a given option does not apply. Those that were not given have the
  /// values of `defaults`, by name, or their own. One with a value there that is not empty counts
  /// as given.
  void require_fitting(const std::map<std::string, std::string>& defaults) const;
  /// Throws InvalidArgument if one of these was given, since they do not apply to `subject`.
  void refuse(std::span<const std::string_view> options, std::string_view subject) const;
  /// Adds to the command and those below it the options of the program itself: --quiet, --verbose
  /// and --color (core/base/console.h), --max-memory (core/base/memory_budget.h) and --plugin
  /// (backends/all_backends.h). The program has none. Commands that are described on demand get
  /// them then.
  void add_program_options();
  /// Exactly one of its subcommands is required.
  void require_subcommand();
  /// Positional arguments come last. From the first argument that it does not know on, all is left
  /// to remaining().
  void take_rest();
  /// All arguments are accepted, and left to remaining().
  void take_all();

  /// True if the command line selects this command.
  bool parsed() const;
  /// Number of times that an option was given. The command must have it.
  std::size_t count(const std::string& option) const;
  /// In the order of addition. A repeated option comes once for each value.
  std::vector<GivenOption> given() const;
  std::vector<std::string> remaining() const;
  std::string name() const;
  /// Names from the program's first command down to this one: "bench conv". Empty: the program.
  std::string path() const;
  std::string help() const;
  void set_help(const std::string& text);
  /// All but --help.
  std::vector<KnownOption> options() const;
  std::vector<KnownOption> positionals() const;
  std::vector<Command> subcommands() const;
  Command program() const;
  bool needs_subcommand() const;
  /// The deepest selected command below this one, or this one.
  Command chosen() const;

 protected:
  explicit Command(CLI::App* app) : app_(app) {}

  CLI::App* app_ = nullptr;
};

/// A whole command line. The last of equal options counts, so that scripts can add to their own.
class CommandLine : public Command {
 public:
  explicit CommandLine(const std::string& name, const std::string& help = "");
  ~CommandLine();

  /// --version prints this.
  void set_version(const std::string& text);
  /// Parses the arguments and runs the callbacks of the selected commands. Prints the help or the
  /// version on request, and the help without arguments. False when they are wrong: message() and
  /// problem() say why.
  bool run(int argc, char** argv);
  /// The problem with the command before it, and a reference to its help.
  std::string message() const;
  const std::string& problem() const { return problem_; }
  /// Reads arguments alone. Throws InvalidArgument when they are wrong.
  void parse(const std::vector<std::string>& arguments);
  /// message() about wrong arguments. Empty: they are right. Calls no callback.
  std::string problem_of(const std::vector<std::string>& arguments);

 private:
  void fail(const CLI::ParseError& error);

  std::unique_ptr<CLI::App> owned_;
  std::string problem_;
};

}  // namespace triptych::app
