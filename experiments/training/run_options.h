// The options of a training run, one row each: name, help, value, limits, and the behaviour on
// resume and between ranks. The command line, JSON, checkpoints, the Python module and the
// reference page are made from this table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "experiments/training/device_set.h"
#include "experiments/training/option_value.h"
#include "experiments/training/run_config.h"

namespace triptych::training {

/// Values that only the command `train` has. They are no part of the run.
struct CommandConfig {
  std::string out;     ///< run folder. Empty: a new one
  std::string resume;  ///< folder of the run that is resumed. Empty: a new run
  bool previous = false;
  std::string replay;  ///< folder of a run with updates.csv
  std::size_t mask_pictures = 4;
  std::vector<std::string> backends;  ///< of several runs, or "all". Empty: one run
};

/// Options that a command has together, under one heading of its help.
enum class OptionGroup : std::uint8_t {
  None,  ///< no command has it: a field of JSON, or an option of Python
  Arrays,
  Data,
  Share,  ///< of the images that validate
  Model,
  Freeze,
  Preset,  ///< numbers that change a preset
  Learning,
  Rate,
  Length,
  Steps,
  Evaluation,
  Folder,
  Keeping,
  Machine,
  Backends,  ///< several runs
  Choice,
  Graph,
  Simulation,
  Tiling,
  Ranks,
  Replay,
  Folds,
  Program,  ///< of every command
};

enum class ResumePolicy : std::uint8_t {
  Stored,       ///< the run keeps the value and refuses another
  Replaceable,  ///< the run keeps the value until resume replaces it
  Free,         ///< each command gives its own
  Refused,      ///< only for a new run
};

/// Values that the ranks of one run may have.
enum class RankPolicy : std::uint8_t {
  Same,
  SameBits,  ///< the same, unless the contract gives the same bits on every machine
  Own,       ///< a path on their own host, a limit of their own memory, a time
};

/// The help calls the value of an option that is written to FOLDER.
enum class OptionPlace : std::uint8_t { None, OutputFolder };

/// The option applies only with another one, or not with it.
struct OptionCondition {
  std::string_view option;
  std::vector<std::string> values = {};  ///< of the other option. Empty: any
  bool applies = true;                   ///< false: it does not apply with it
};

using ModelMember = Value (*)(ModelConfig&);
using RunMember = Value (*)(RunConfig&);
using MachineMember = Value (*)(ExecutionConfig&);
using CommandMember = Value (*)(CommandConfig&);
using OptionMember =
    std::variant<std::monostate, ModelMember, RunMember, MachineMember, CommandMember>;

struct RunOption {
  std::string_view name = {};  ///< with its dashes. Empty: a field without an option
  OptionGroup group = OptionGroup::None;
  OptionMember member = {};
  std::string_view field = {};   ///< in JSON, "data.source" for one of the object "data"
  std::string_view python = {};  ///< keyword of a machine in Python
  std::string_view value = {};   ///< name of its value in the help: "DIR"
  std::string_view help = {};

  Limits limits = {};
  Limits given_limits = {};  ///< of a given option, where they are narrower
  Unit unit = Unit::None;
  bool help_default = true;  ///< the help shows the default
  bool turns_off = false;    ///< a flag that makes the value false
  bool comma_list = false;   ///< one text with commas for a list
  bool for_images = false;   ///< it does not apply to arrays
  OptionPlace place = OptionPlace::None;
  std::vector<OptionCondition> conditions = {};

  ResumePolicy resume = ResumePolicy::Stored;
  /// False: a new value on resume may change the bits of the steps that follow.
  bool same_bits = true;
  /// Another option that is replaced together with this one.
  std::string_view replaced_with = {};
  /// Adapts the machine to a new value before it is copied.
  void (*before_replacing)(ExecutionConfig& run, const ExecutionConfig& asked) = nullptr;
  RankPolicy ranks = RankPolicy::Same;

  bool stored = true;                  ///< the JSON of a run has the field
  std::string_view written_with = {};  ///< field that must be set, or this one is left out
  bool completed = false;              ///< the run adds the value when it is not given
};

std::span<const RunOption> run_options();

/// The row of a name, with its dashes or without. Null for a name that no row has.
const RunOption* find_run_option(std::string_view name);

/// The row of a name that the table has.
const RunOption& run_option(std::string_view name);

/// The largest value of a whole number.
std::int64_t most_of(std::string_view name);

/// "batch" of "training.batch".
std::string_view last_part(std::string_view field);

/// The value from the run's configuration, including its model, and from no other row.
std::optional<Value> value_in(const RunOption& option, RunConfig& config);
std::optional<Value> value_in(const RunOption& option, ExecutionConfig& machine);

/// Options that were given on resume, and the values that all options then have.
struct ResumeOptions {
  std::span<const std::string> given;  ///< names with dashes, or keywords of Python
  const RunConfig& config;
  const ExecutionConfig& machine;
};

/// Applies the policies to a stored run. Throws InvalidArgument, which contains the option, for an
/// option that the run does not take.
void apply_on_resume(const ResumeOptions& options, RunConfig& run, ExecutionConfig& machine);

/// The same for the machine alone. Other options are left out.
void apply_on_resume(const ResumeOptions& options, ExecutionConfig& machine);

/// Throws InvalidArgument when a stored option of the machine differs: the bits would, too.
void require_same_numerics(const ExecutionConfig& run, const ExecutionConfig& other);

/// True when `saved` is a run of the options `asked`. Values that the run completed count only if
/// they were given.
bool is_run_of(const RunConfig& saved, const RunConfig& asked);

/// True for a field of the configuration, "data.source", that each rank may have for itself. A list
/// counts with all its entries.
bool is_per_process(std::string_view field);

}  // namespace triptych::training
