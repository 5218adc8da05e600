// The plan: for each node its device and prepared kernel, for each value its place in memory, and
// the copies between devices. Made once, run again and again by an Executor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/placement.h"

namespace triptych {

/// Where a value lives on one device. States live in the store of the plan's first device, their
/// copies on other devices in the arena.
enum class Storage { Arena, State, Constant };

struct Location {
  Storage storage = Storage::Arena;
  std::size_t offset = 0;         ///< bytes into the device's arena or constants; 0 for a State
  std::int64_t outer_stride = 0;  ///< elements; dense unless written in place into a concat
  std::optional<ChannelsLast> channels_last = std::nullopt;  ///< as in Operand
  /// The value that owns the memory: itself, unless it is a view, an update, written over a dying
  /// input or written into a concat.
  ValueId root;
};

/// A copy of one value between devices.
struct Crossing {
  ValueId value;
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t bytes = 0;
};

/// One node in order of execution.
struct Step {
  NodeId node;
  std::size_t device = 0;
  const KernelEntry* entry = nullptr;  ///< nullptr: nothing runs (a view, a concat in place)
  std::unique_ptr<Kernel> kernel;
  std::vector<Crossing> crossings;    ///< copies to make before it
  std::vector<Crossing> write_backs;  ///< copies of updated states to make after it
  std::vector<Refusal> refusals;
  std::string choice;  ///< reason for the choice of this kernel, may be empty
  /// Where its output stays for the next kernel of the device, without a place in memory that it is
  /// written to. Empty: it is in memory (Kernel::keep_output_for).
  std::string keeps_output;
  /// How many of the plan's collectives must have finished before it (CollectiveRunner).
  std::size_t collectives_needed = 0;
  /// The step before which a collective that may finish later has, at the latest.
  std::size_t finished_by = 0;
};

struct PlanOptions {
  PlacementOptions placement;
  /// Concats are written, and slices read in place, where every kernel accepts the strides.
  bool concat_in_place = true;
  /// Activations are stored channels last where every kernel takes that.
  bool channels_last = true;
  /// An output with one reader stays on the device, out of memory, where its kernel can do that.
  bool keep_outputs = true;
  /// Makes every value readable after a run (for tests and to find the first bad node). No two
  /// values share memory and nothing is overwritten, except views and updates of states.
  bool keep_values = false;
};

struct Plan {
  Graph graph;
  std::vector<Device*> devices;
  std::vector<Step> steps;
  /// [device][value]. Empty where the value is not on that device. Inputs and constants are on
  /// every device that reads them.
  std::vector<std::vector<std::optional<Location>>> locations;
  std::vector<std::size_t> homes;           ///< [value]: the device where the host reads it
  std::vector<std::size_t> arena_bytes;     ///< per device: inputs, activations, scratch
  std::vector<std::size_t> scratch_bytes;   ///< per device: the largest kernel's, of the arena
  std::vector<std::size_t> state_bytes;     ///< per device
  std::vector<std::size_t> constant_bytes;  ///< per device
  std::vector<std::size_t> kernel_bytes;    ///< per device: kept by kernels (packed weights)
  PlanOptions options;

  /// All memory that running the plan needs on a device.
  std::size_t total_bytes(std::size_t device) const;
  /// The operands of `step` as its kernel sees them.
  std::vector<Operand> input_operands(const Step& step) const;
  std::vector<Operand> output_operands(const Step& step) const;
};

/// The reason for the place and the kernel of a step, in words: "best kernel", the measurement, or
/// the refusal.
std::string reason_of(const Plan& plan, const Step& step);

/// Verifies the graph, expands composites without a kernel, fuses elementwise operators, places the
/// nodes, plans the memory and prepares the kernels. `devices[0]` is preferred, the others are
/// allowed fallbacks. They must outlive the plan. Throws UnsupportedError as `place` does.
Plan make_plan(Graph graph, std::vector<Device*> devices, const PlanOptions& options = {});

}  // namespace triptych
