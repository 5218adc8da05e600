// Options that several commands share, and how their values are written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/contract.h"
#include "core/base/list_text.h"
#include "core/nn/losses.h"
#include "core/nn/models.h"
#include "experiments/app/command_line.h"
#include "experiments/measure/model_plan.h"
#include "experiments/training/device_set.h"
#include "experiments/training/limits.h"

namespace triptych::app {

using training::DeviceSet;

inline constexpr std::int64_t kMaxSide = std::int64_t{1} << 20;  // of a matrix or a picture

/// Common part of every command: `--json`, and the exit status it leaves.
struct Context {
  bool json = false;
  int exit_code = 0;
};

/// Exit codes of the program (docs/reference/exit-codes.md).
enum ExitCode {
  kDone = 0,
  kCheckFailed = 1,
  kUsage = 2,
  kNoDevice = 3,
  kUnsupported = 4,
  kNumeric = 5,
  kStopped = 130  ///< by a signal, as shells expect of SIGINT
};

inline constexpr std::int64_t kMaxThreads = training::limits::kThreads.high;
inline constexpr std::int64_t kMaxBatch = training::limits::kBatch.high;
inline constexpr std::int64_t kMaxMemoryMib = training::limits::kMemoryMib.high;
inline constexpr std::int64_t kMaxSeed = training::limits::kSeed.high;

/// Accepts finite numbers within the limits.
Validator within(const training::NumberLimits& limits);
inline Validator number_from(double low, double high) { return within({low, high}); }
inline Validator number_above(double low, double high) { return within({low, high, true}); }
/// Accepts whole numbers within the limits.
Validator within(const training::WholeLimits& limits);
inline Validator whole_from(std::int64_t low, std::int64_t high) {
  return within(training::WholeLimits{low, high});
}
/// Accepts a text of numbers that `parse` reads without an Error.
Validator read_by(std::function<void(const std::string&)> parse, std::string description);
/// Accepts lists as parse_numbers reads them, of numbers from 1 to `high`; "0" alone, too, when
/// `or_zero`.
Validator numbers_to(std::int64_t high, bool or_zero = false);

/// --model, a preset and the numbers that override it, or an ONNX file.
struct ModelOptions {
  std::string model = "unet-s";
  std::string freeze;             ///< names of an ONNX file's initialisers that are not trained
  std::vector<std::string> bind;  ///< of an ONNX file for inference: OnnxModelOptions
  std::optional<std::int64_t> base, depth, size, in_channels, classes;
  bool takes_arrays = false;  ///< the command has --input and --target

  void add_to(Command& command);
  /// A training's use of an ONNX file.
  struct Use {
    LossKind loss = LossKind::CrossEntropy;
    std::vector<std::string> inputs = {};  ///< [NAME=]FILE.npy, where it trains on arrays
  };
  /// The preset with its overrides; throws InvalidArgument when it is not valid. Of an ONNX file,
  /// as training::imported_model, with notes on standard error.
  ModelConfig config(const Use& use) const;
  ModelConfig config() const { return config(Use()); }
  /// True for an ONNX file.
  bool is_file() const { return model.ends_with(".onnx"); }
  /// The subject of bench, explain and trace: for inference whatever an ONNX file holds. Gives the
  /// batch that --bind says where --batch does not.
  std::optional<std::int64_t> set_model(measure::Mode mode, ModelConfig& config,
                                        measure::InferenceGraph& inference) const;
  /// --bind, where files for inference are taken.
  void add_bind_to(Command& command);

 private:
  /// Throws InvalidArgument for what only a preset leaves to choose.
  void require_options_of_files() const;
  ModelConfig imported(const Use& use) const;

  Command command_;  ///< of add_bind_to
};

/// --mode, train or infer, and --memory-limit of training, in MiB.
void add_mode_options(Command& command, measure::Mode& mode, std::size_t& memory_limit);

/// --contract; the numeric contract by its name.
Option add_contract_option(Command& command, Contract& contract, const std::string& help);

/// --backend, --threads, --contract, --fallback, --machine, --simulate, --kernel, --choice.
struct MachineOptions {
  std::string backend = "cpu";
  std::string fallback;
  int threads = 0;
  Contract contract = Contract::F32;
  std::string machine;
  std::optional<mmu::Simulation> simulate;
  std::string tiling;
  std::string kernel;
  training::Selection choice = training::Selection::ByDevice;
  bool no_graph = false;
  bool no_winograd = false;

  void add_to(Command& command);
  /// --machine and --simulate alone.
  void add_choice_to(Command& command);
  void add_simulation_to(Command& command);
  void add_tiling_to(Command& command);
  training::ExecutionConfig config() const;
};

}  // namespace triptych::app
