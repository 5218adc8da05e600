// One operator as stream problems: packed operands in DRAM, the machine's computation, and unpacked
// results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "backends/systolic/lowering/lower.h"
#include "backends/systolic/lowering/stream_problem.h"
#include "backends/systolic/lowering/tiling.h"
#include "backends/systolic/packing/packing.h"

namespace triptych::systolic {

/// One problem. Its operands are indices into the plan's lists.
struct StreamJob {
  StreamProblem problem;
  std::size_t image = 0;
  std::size_t matrix = 0;
  std::optional<std::size_t> registers;  ///< bias, and for int8 results also multiplier and shift
  std::size_t result = 0;
  bool relu = false;
  Tiling tiling = {};  ///< chosen by PlanLowering::lower
};

struct StreamPlan {
  Parts parts;
  std::vector<ImagePacking> images;
  std::vector<MatrixPacking> matrices;
  std::vector<RegisterPacking> registers;
  std::vector<ResultUnpacking> results;
  std::vector<StreamJob> jobs;
  /// Rows of the unified buffer that hold the only image before the program begins, and that
  /// receive the only result. Neither crosses the DRAM then.
  std::optional<std::int64_t> image_row;
  std::optional<KeptResult> kept;
  std::int64_t dram_bytes = 0;
  std::int64_t bytes_in = 0;   ///< packed in one run
  std::int64_t bytes_out = 0;  ///< unpacked
  double cycles = 0;           ///< estimate
  double traffic = 0;          ///< estimate of Tiling::traffic

  /// Multiply-adds of the operands alone: no padded channels and no unused columns.
  std::int64_t macs() const;
};

/// Each tiling of the plan's jobs, once, as to_string(Tiling) writes it.
std::string tilings_of(const StreamPlan& plan);

/// Purpose that a plan is written for.
struct PlanTarget {
  std::int64_t group = 1;  ///< of the streamed operand's channels
};

/// A plan with its program.
struct Lowered {
  StreamPlan plan;
  mmu::Program program;
  mmu::Counters counters;  ///< by the twin's clock
  std::vector<StreamPlan>
      open;  ///< the plan before tilings and addresses, for each group, of one problem only
};

/// Makes plans and programs for one machine.
class PlanLowering {
 public:
  /// Leaves slices, column tiles, tilings and addresses open.
  using Planner = std::function<StreamPlan(const PlanTarget&)>;

  /// Plans have the sizes of `tiling`, as far as it gives them.
  explicit PlanLowering(const mmu::MachineConfig& machine, TilingChoice tiling = {})
      : machine_(machine), tiling_(std::move(tiling)) {}

  /// Completes the plan for all groups and parts of the memories, its operands in DRAM from address
  /// 0 on. Returns the one with the least DRAM traffic among those within 1 % of the fewest cycles.
  /// For problems met before, the one that was found then. Throws UnsupportedError when DRAM is too
  /// small, or when a number does not fit the instruction set.
  Lowered lower(const Planner& planner);
  /// The same for plans in Lowered::open, with another set of operands that cross the DRAM: nothing
  /// where none fits the machine.
  std::optional<Lowered> lower(const std::vector<StreamPlan>& plans) const;
  /// True when somebody has fixed sizes.
  bool has_given_tiling() const { return !tiling_.text.empty(); }
  const mmu::MachineConfig& machine() const { return machine_; }
  /// The program of a plan that lower() returned.
  mmu::Program program_of(const StreamPlan& plan) const;

 private:
  struct Choice {
    std::vector<StreamProblem> problems;  ///< of all groups
    std::size_t plan = 0;                 ///< among those of all groups
    mmu::Counters counters;
    Parts parts;
    std::vector<Tiling> tilings;
  };

  const mmu::MachineConfig& machine_;
  TilingChoice tiling_;
  std::vector<Choice> choices_;
};

}  // namespace triptych::systolic
