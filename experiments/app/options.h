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
#include "experiments/training/option_value.h"

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

/// Accepts finite numbers within the limits.
Validator within(const training::NumberLimits& limits);
inline Validator number_from(double low, double high) { return within({low, high}); }
/// Accepts whole numbers within the limits.
Validator within(const training::WholeLimits& limits);
inline Validator whole_from(std::int64_t low, std::int64_t high) {
  return within(training::WholeLimits{low, high});
}
/// Accepts a text of numbers that `parse` reads without an Error.
Validator read_by(std::function<void(const std::string&)> parse, std::string description);
/// Accepts lists of numbers from 1 to `high` (parse_numbers). Also accepts "0" alone when
/// `or_zero`.
Validator numbers_to(std::int64_t high, bool or_zero = false);

/// --model, a preset and the numbers that override it, or an ONNX file.
struct ModelOptions {
  ModelConfig asked;              ///< preset or file, and the given numbers
  std::string freeze;             ///< names of an ONNX file's initialisers that are not trained
  std::vector<std::string> bind;  ///< of an ONNX file for inference: OnnxModelOptions
  bool takes_arrays = false;      ///< the command has --input and --target

  void add_to(Command& command);
  const std::string& name() const { return asked.name; }
  /// A training's use of an ONNX file.
  struct Use {
    LossKind loss = LossKind::CrossEntropy;
    std::vector<std::string> inputs = {};  ///< [NAME=]FILE.npy, where it trains on arrays
  };
  /// The preset with its overrides. Throws InvalidArgument when it is not valid. An ONNX file is
  /// read by training::imported_model, with notes on standard error.
  ModelConfig config(const Use& use) const;
  ModelConfig config() const { return config(Use()); }
  /// True for an ONNX file.
  bool is_file() const { return name().ends_with(".onnx"); }
  /// The model of bench, explain and trace. An ONNX file is used for inference. Gives the batch
  /// that --bind says where --batch does not.
  std::optional<std::int64_t> set_model(measure::Mode mode, ModelConfig& config,
                                        measure::InferenceGraph& inference) const;
  /// Adds --bind to commands that take files for inference.
  void add_bind_to(Command& command);

 private:
  /// Throws InvalidArgument for options that apply only to a preset.
  void require_options_of_files() const;
  ModelConfig imported(const Use& use) const;

  /// The value of a number, if given.
  std::optional<std::int64_t> given(const char* option, std::int64_t value) const;

  Command command_;
};

/// --mode, train or infer, and --memory-limit of training, in MiB.
void add_mode_options(Command& command, measure::Mode& mode, std::size_t& memory_limit);

/// --contract. The numeric contract by its name.
Option add_contract_option(Command& command, Contract& contract, const std::string& help);

}  // namespace triptych::app
