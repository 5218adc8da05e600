// The options of `triptych train`, one row each, and their behaviour when a run is resumed. The
// command line, its elastic restarts, the Python module and the comparison of ranks read this
// table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "experiments/training/run_config.h"

namespace triptych::training {

struct ExecutionConfig;

enum class ResumePolicy : std::uint8_t {
  Stored,       ///< the run keeps the value and refuses another
  Replaceable,  ///< the run keeps the value until resume replaces it
  Free,         ///< each command gives its own
  Refused,      ///< only for a new run
};

struct RunOption {
  std::string_view name;  ///< with its dashes
  ResumePolicy policy = ResumePolicy::Stored;
  /// False: a new value on resume may change the bits of the steps that follow.
  bool same_bits = true;
  /// Field of the run's configuration in JSON, "data.source". Empty: none that may change.
  std::string_view field = {};
  /// Ranks may have different values: a path on their own host, or a limit of their own memory.
  bool per_process = false;
  /// Copies the value. Null: the caller does that, or there is nothing to copy.
  void (*take_config)(RunConfig& run, const RunConfig& asked) = nullptr;
  void (*take_machine)(ExecutionConfig& run, const ExecutionConfig& asked) = nullptr;
  /// The value of a stored option of the machine, to compare and to show.
  std::string (*text)(const ExecutionConfig& machine) = nullptr;
};

std::span<const RunOption> run_options();

/// Null for a name that `train` does not have.
const RunOption* find_run_option(std::string_view name);

/// Options that were given when a run is resumed, and the values that all options then have.
struct ResumeOptions {
  std::span<const std::string> given;  ///< names with dashes
  const RunConfig& config;
  const ExecutionConfig& machine;
};

/// Applies the policies to a stored run. Throws InvalidArgument, which names the option, for an
/// option that the run does not take.
void apply_on_resume(const ResumeOptions& options, RunConfig& run, ExecutionConfig& machine);

/// The same for the machine alone. Other options are left out.
void apply_on_resume(const ResumeOptions& options, ExecutionConfig& machine);

/// Throws InvalidArgument when a stored option of the machine differs: the bits would, too.
void require_same_numerics(const ExecutionConfig& run, const ExecutionConfig& other);

/// True for a field of the configuration, "data.source", whose value may change on resume.
bool may_change(std::string_view field);

/// True for a field that each rank may have for itself. A list counts with all its entries.
bool is_per_process(std::string_view field);

}  // namespace triptych::training
