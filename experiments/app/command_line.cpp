// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/base/memory_budget.h"
#include "core/base/nearest_name.h"
#include "core/io/output_ledger.h"
#include "experiments/app/help.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/ruled_app.h"
#include "experiments/app/unit_text.h"
#include "experiments/app/usage.h"

namespace triptych::app {
namespace {

/// Texts of Option::alone_means, of the command and those below it.
std::map<std::string, std::vector<std::string>> options_alone(const CLI::App& app) {
  auto found = static_cast<const RuledApp&>(app).alone;
  for (const auto* below : app.get_subcommands({})) found.merge(options_alone(*below));
  return found;
}

/// The arguments from the last to the first, as CLI11 takes them, for which the commands that they
/// name have their options. An option that stands alone has its value behind it.
std::vector<std::string> complete_arguments(CLI::App& app,
                                            const std::vector<std::string>& arguments) {
  const auto is_named = [&](const CLI::App* command) {
    return std::ranges::count(arguments, command->get_name()) > 0;
  };
  for (auto* command : app.get_subcommands(is_named)) ruled(command).describe_once();
  const auto alone = options_alone(app);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    result.push_back(arguments[i]);
    const auto option = alone.find(arguments[i]);
    if (option == alone.end()) continue;
    const auto& texts = option->second;
    const bool has_value =
        i + 1 < arguments.size() && std::ranges::count(texts, arguments[i + 1]) > 0;
    if (!has_value) result.push_back(texts.front());
  }
  std::ranges::reverse(result);
  return result;
}

constexpr const char* kOverwrite = "--overwrite";
constexpr const char* kPlugin = "--plugin";

/// --overwrite of a command that writes to `output`, perhaps to others already.
void add_overwrite(RuledApp& app, const CLI::Option& output) {
  const auto rule = std::ranges::find(app.rules, kOverwrite, &Rule::own);
  if (rule != app.rules.end()) return rule->others.push_back(output.get_name());
  app.rules.push_back(
      {.own = kOverwrite, .others = {output.get_name()}, .values = {}, .or_by_default = true});
  app.of_program.insert(kOverwrite);
  app.add_flag_callback(
      kOverwrite,
      [] {
        allow_overwriting([](const std::filesystem::path& path) {
          say_note(fmt::format("replaces \"{}\"", path.string()));
        });
      },
      "replace existing files, and name each");
}

/// Blocks of malloc() that are mapped each by itself once there is a limit, so that they leave the
/// process when they are freed.
constexpr int kMappedFrom = 1 << 18;

bool only_reads(CLI::App* app) { return ruled(&program_of(*app)).only_reads; }

/// Sets the limit of the process unless the command line is only read.
void limit_memory(CLI::App* app, const std::string& mebibytes) {
  if (only_reads(app)) return;
  std::size_t count = 0;
  std::from_chars(mebibytes.data(), mebibytes.data() + mebibytes.size(), count);
  memory_budget().set_limit(count << 20);
  ::mallopt(M_MMAP_THRESHOLD, kMappedFrom);
}

/// Loads plugins while the arguments are read, so that later ones may name their backends. Does
/// nothing when the command line is only read.
void load_plugins(CLI::App* app, const std::vector<std::string>& files) {
  if (only_reads(app)) return;
  try {
    for (const auto& file : files) load_plugin(file);
  } catch (const Error& error) {
    throw CLI::ValidationError(kPlugin, error.what());
  }
}

Validator not_empty() {
  return {"", [](const std::string& text) { return text.empty() ? "must not be empty" : ""; }};
}

}  // namespace

Validator one_of(std::vector<std::string> words) {
  const auto check = [words](const std::string& text) -> std::string {
    if (std::ranges::count(words, text) > 0) return {};
    return fmt::format("must be one of {}, got \"{}\"{}", fmt::join(words, ", "), text,
                       suggestion(text, words));
  };
  return {.range = {}, .problem = check, .words = std::move(words)};
}

std::optional<double> read_number(const std::string& text) {
  double value = 0;
  if (!CLI::detail::lexical_cast(text, value)) return std::nullopt;
  return value;
}

Option Option::required() { return {app_, option_->required()->default_str("")}; }

Option Option::check(Validator validator) {
  auto& details = ruled(app_).details[option_->get_name()];
  if (validator.of_numbers) details.of_numbers = true;
  if (!validator.words.empty()) details.words = std::move(validator.words);
  if (!validator.range.empty()) details.range = std::move(validator.range);
  return {app_, option_->check(std::move(validator.problem))};
}

Option Option::without_default() { return default_text(""); }

Option Option::value(std::string_view name) {
  ruled(app_).details[option_->get_name()].value = name;
  return *this;
}

void Option::value_if_unnamed(std::string_view name) {
  auto& value = ruled(app_).details[option_->get_name()].value;
  if (value.empty()) value = name;
}

Option Option::output_file() {
  add_overwrite(ruled(app_), *option_);
  ruled(app_).outputs.insert(option_->get_name());
  value_if_unnamed("FILE");
  return *this;
}

Option Option::output_folder() {
  add_overwrite(ruled(app_), *option_);
  ruled(app_).outputs.insert(option_->get_name());
  value_if_unnamed("DIR");
  return *this;
}

Option Option::default_text(const std::string& text) { return {app_, option_->default_str(text)}; }

Option Option::list_of(int count) {
  const auto once = CLI::MultiOptionPolicy::Throw;
  option_->transform([](const std::string& text) { return std::string(trimmed(text)); });
  return {app_, option_->delimiter(',')->expected(count)->multi_option_policy(once)};
}

Option Option::in(training::Unit unit) {
  ruled(app_).details[option_->get_name()].unit = unit;
  option_->transform([unit](const std::string& text) { return number_in(unit, text); });
  return *this;
}

Option Option::repeated() {
  const auto all = CLI::MultiOptionPolicy::TakeAll;
  return {app_, option_->expected(1)->multi_option_policy(all)->allow_extra_args(false)};
}

Option Option::only_with(const std::string& option, std::vector<std::string> values) {
  ruled(app_).rules.push_back({option_->get_name(), {option}, std::move(values), true});
  return *this;
}

Option Option::only_with_any(std::vector<std::string> options) {
  ruled(app_).rules.push_back({option_->get_name(), std::move(options), {}, true});
  return *this;
}

Option Option::alone_means(const std::string& text, std::vector<std::string> values) {
  values.insert(values.begin(), text);
  ruled(app_).alone[option_->get_name()] = std::move(values);
  return *this;
}

Option Option::not_with(const std::string& option, std::vector<std::string> values) {
  ruled(app_).rules.push_back({option_->get_name(), {option}, std::move(values), false});
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(std::make_shared<RuledApp>(help, name, app_)));
}

void Command::add_subcommand(const std::string& name, const std::string& help,
                             std::function<void(Command&)> describe) {
  auto command = add_subcommand(name, help);
  ruled(command.app_).describe = [command, add = std::move(describe)]() mutable {
    add(command);
    command.add_program_options();
  };
}

template <typename T>
Option Command::add_option(const std::string& name, T& value, const std::string& help) {
  Option option(app_, app_->add_option(name, value, help));
  constexpr bool numbers = std::is_same_v<T, std::vector<std::int64_t>>;
  if constexpr (numbers || std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
    option.option_->capture_default_str();
  constexpr bool text =
      std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>;
  ruled(app_).details[option.option_->get_name()].of_numbers = !text;
  return text ? option.check(not_empty()) : option;
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, float&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::int64_t>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::int64_t>&,
                                    const std::string&);

Option Command::add_text(const std::string& name,
                         const std::function<void(const std::string&)>& take,
                         const std::function<std::string()>& present, const std::string& help) {
  const auto read = [name, take](const std::string& text) {
    try {
      take(text);
    } catch (const Error& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  auto* option = app_->add_option_function<std::string>(name, read, help);
  option->default_function(present)->capture_default_str();
  return Option(app_, option).check(not_empty());
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  return {app_, app_->add_flag(name, value, help)};
}

Option Command::add_flag_off(const std::string& name, bool& value, const std::string& help) {
  return {app_, app_->add_flag_callback(
                    name, [&value] { value = false; }, help)};
}

void Command::add_flag(const std::string& name) { app_->add_flag(name); }

Option Command::option(const std::string& name) const { return {app_, app_->get_option(name)}; }

void Command::begin_group(const std::string& heading) {
  app_->option_defaults()->group(heading.empty() ? "Options" : heading);
}

void Command::add_program_options() {
  for (auto command : subcommands()) command.add_program_options();
  if (app_->get_parent() == nullptr) return;
  begin_group(kCommonHeading);
  auto* quiet = app_->add_flag_callback(
      "--quiet", [] { set_loudness(Loudness::Quiet); }, "print only results, notes and errors");
  app_->add_flag_callback(
      "-v,--verbose", [] { set_loudness(Loudness::Verbose); }, "also print details");
  Option(app_, quiet).not_with("--verbose");
  add_text(
      "--color", [](const std::string& text) { set_colours(value_of<Colours>(text)); },
      [] { return std::string(name_of(Colours::Auto)); }, "when to use colours")
      .check(one_of(names_of<Colours>()));
  add_text(
      "--max-memory", [app = app_](const std::string& text) { limit_memory(app, text); },
      [] { return std::string(); },
      "limit on the memory of the process in MiB, or with a unit: 2GiB (default: all memory)")
      .check(allowed_for("--max-memory"))
      .in(training::run_option("--max-memory").unit);
  auto* plugin = app_->add_option_function<std::vector<std::string>>(
      kPlugin, [app = app_](const auto& files) { load_plugins(app, files); },
      "shared library with further backends or kernels, whose code then runs in this program");
  Option(app_, plugin->trigger_on_parse()).repeated().check(not_empty());
  ruled(app_).of_program.insert({"--quiet", "--verbose", "--color", "--max-memory", kPlugin});
}

void Command::callback(std::function<void()> run) { app_->callback(std::move(run)); }

void Command::fits_later_with(const std::string& option) { ruled(app_).later_with = option; }

void Command::refuse_with(const std::string& option, const std::vector<std::string>& refused) {
  for (const auto& own : refused) ruled(app_).rules.push_back({own, {option}, {}, false});
}

void Command::require_fitting(const Texts& defaults) const {
  try {
    ruled(app_).check_rules(defaults);
  } catch (const CLI::ParseError& error) {
    throw InvalidArgument(error.what());
  }
}

void Command::refuse(std::span<const std::string_view> options, std::string_view subject) const {
  for (const auto option : options) {
    if (count(std::string(option)) == 0) continue;
    throw InvalidArgument(fmt::format("{} does not apply to {}; leave it out", option, subject));
  }
}

void Command::require_subcommand() { app_->require_subcommand(1); }

void Command::take_rest() { app_->positionals_at_end()->prefix_command(); }

void Command::take_all() { app_->allow_extras()->prefix_command(); }

bool Command::parsed() const { return app_->parsed(); }

std::size_t Command::count(const std::string& option) const { return app_->count(option); }

std::vector<GivenOption> Command::given() const {
  std::vector<GivenOption> given;
  for (auto* option : app_->get_options()) {
    if (option->count() == 0) continue;
    const auto name = option->get_name();
    if (option->get_items_expected_max() == 0) {
      given.push_back({name, {}});
    } else if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll) {
      for (const auto& text : option->results()) given.push_back({name, text});
    } else {
      given.push_back({name, option->as<std::string>()});
    }
  }
  return given;
}

std::vector<std::string> Command::remaining() const { return app_->remaining(); }

CommandLine::CommandLine(const std::string& name, const std::string& help)
    : Command(new RuledApp(help, name)), owned_(app_) {
  owned_->set_help_flag("-h,--help", "print this help");
  owned_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CommandLine::~CommandLine() = default;

void CommandLine::set_version(const std::string& text) {
  owned_->set_version_flag("-V,--version", text, "print the version");
}

void CommandLine::fail(const CLI::ParseError& error) { problem_ = usage_problem(*owned_, error); }

bool CommandLine::run(int argc, char** argv) {
  try {
    if (argc <= 1) throw CLI::CallForHelp();
    owned_->parse(complete_arguments(*owned_, {argv + 1, argv + argc}));
  } catch (const CLI::CallForHelp&) {
    print_text("{}", help_text(chosen()));
  } catch (const CLI::CallForVersion& version) {
    print_text("{}\n", version.what());
  } catch (const CLI::Success&) {
    return true;
  } catch (const CLI::ParseError& error) {
    fail(error);
    return false;
  }
  return true;
}

std::string CommandLine::message() const {
  const auto name = chosen().path();
  const auto full = name.empty() ? owned_->get_name() : owned_->get_name() + " " + name;
  return fmt::format("{0}: {1}\nsee {0} --help\n", full, problem_);
}

std::string CommandLine::problem_of(const std::vector<std::string>& arguments) {
  ruled(app_).only_reads = true;
  std::string problem;
  try {
    owned_->parse(complete_arguments(*owned_, arguments));
  } catch (const CLI::Success&) {
    problem.clear();
  } catch (const CLI::ParseError& error) {
    fail(error);
    problem = message();
  }
  ruled(app_).only_reads = false;
  return problem;
}

void CommandLine::parse(const std::vector<std::string>& arguments) {
  try {
    owned_->parse(complete_arguments(*owned_, arguments));
  } catch (const CLI::ParseError& error) {
    fail(error);
    throw InvalidArgument(fmt::format("triptych {}: {}", owned_->get_name(), problem_));
  }
}

}  // namespace triptych::app
