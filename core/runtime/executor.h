// Runs a plan again and again without allocating.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/plan.h"
#include "core/runtime/state_store.h"

namespace triptych {

/// Time of one step on its device's clock.
struct StepProfile {
  NodeId node;
  std::size_t device = 0;
  std::string_view kernel;  ///< empty for a step that runs nothing
  Duration start;           ///< since the begin of the run
  Duration time;
};

class Executor {
 public:
  /// Allocates arenas, uploads constants and creates missing states in `states`, which must belong
  /// to the plan's first device (states of nodes on fallback devices are copied across each run).
  /// `states` must outlive the executor. With a `lender`, arenas that are large enough are its
  /// own: the two must not run at once, and a run of one ends the values of the other.
  Executor(Plan plan, StateStore& states, const Executor* lender = nullptr);
  ~Executor();
  Executor(Executor&&) noexcept;

  /// Copies `value` to the input of that name. Throws InvalidArgument for another name or spec.
  void set_input(std::string_view name, const Tensor& value);
  /// The same from memory of the caller's, dense and row-major, of any alignment.
  void set_input(std::string_view name, const TensorSpec& spec, std::span<const std::byte> value);
  /// One run of all steps. Throws InvalidArgument for an index out of range, when the run has
  /// ended: its outputs mean nothing then. An exception of a kernel is rethrown as DeviceError
  /// naming the node (a NumericError as NumericError), with the kernel's own nested in it. A
  /// CommError, which is the same on every rank, as it is.
  void run();
  /// The same with the time of each step. Slower, because it synchronises after each. `on_step`
  /// hears of each when it has run.
  std::vector<StepProfile> run_profiled(
      const std::function<void(const StepProfile&)>& on_step = {});
  /// Runs step by step and stops after the first step with a floating-point output that is not
  /// finite. Returns its node, or nothing when all are. Non-finite inputs and states are not looked
  /// at.
  std::optional<NodeId> run_until_not_finite();
  /// Host copy of a marked output (or, with keep_values, of any value by its name) after a run.
  Tensor output(std::string_view name) const;

  const Plan& plan() const;
  StateStore& states() const;
  /// Allocated bytes of all devices: arenas, constants and kernels' own, without states.
  std::size_t allocated_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace triptych
