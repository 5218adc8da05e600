// Work of a systolic array's units in every cycle of a run, node by node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/executor.h"
#include "experiments/page/json.h"
#include "systolic/driver/watcher.h"

namespace triptych::measure {

/// One node's program. Cycles inside of it count from 0. `begin` is its first cycle of the run, in
/// which programs follow one after the other.
struct ArrayNode {
  std::string name;
  std::size_t step = 0;  ///< of the plan
  mmu::Program program;
  std::string tiling;     ///< ProgramOwner::tiling
  mmu::RunReport report;  ///< with times and stalls
  std::uint64_t begin = 0;

  std::uint64_t cycles() const { return report.counters.cycles; }
};

/// The programs of a plan in order, with the times that they will take: those do not depend on
/// data.
std::vector<ArrayNode> array_nodes(const Plan& plan, const mmu::MachineConfig& machine);

/// The node of that name. Throws InvalidArgument for one that does not run on the array.
const ArrayNode& find_node(const std::vector<ArrayNode>& nodes, const Plan& plan,
                           const std::string& name);

/// Up to `end`, in cycles of a program.
struct CycleWindow {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Multiply-adds of one program as JSON (docs/reference/json.md, "Per PE"), those of a window.
class PeRecorder {
 public:
  /// A window holds no more multiply-adds than this, or it throws InvalidArgument.
  static constexpr std::size_t kMostSteps = 2'000'000;

  explicit PeRecorder(CycleWindow window);
  /// Lives as long as the recorder.
  const mmu::PeWatcher& watcher() const { return watcher_; }
  /// By cycle, then row, then column.
  page::Json json(const ArrayNode& node, const mmu::MachineConfig& machine);

 private:
  CycleWindow window_;
  mmu::PeWatcher watcher_;
  std::vector<mmu::PeStep> steps_;
};

/// Puts the actual times of a run into `nodes`, and requests the waves of one of them.
class ArrayWatcher : public mmu::Watcher {
 public:
  explicit ArrayWatcher(std::vector<ArrayNode>& nodes) : nodes_(nodes) {}
  /// The FST file goes to `path`. Its save file calls it `name`.
  void want_waves(const ArrayNode& node, std::string path, std::string name, CycleWindow window);
  /// `recorder` receives the node's multiply-adds.
  void want_pes(const ArrayNode& node, const PeRecorder& recorder);

  mmu::RunOptions starts(const mmu::Program& program) override;
  void ended(const mmu::Program& program, const mmu::RunReport& report) override;

 private:
  std::vector<ArrayNode>& nodes_;
  std::size_t next_ = 0;
  std::size_t looked_at_ = ~std::size_t{0};  ///< the node for waves or PEs
  mmu::RunOptions looks_;
};

/// First cycle, cycle after the last.
using Interval = std::pair<std::uint64_t, std::uint64_t>;
/// When the array takes values: between the stalls.
std::vector<Interval> issuing(const ArrayNode& node);

mmu::Unit unit_of(const mmu::Instruction& instruction);
/// Belongs to no unit.
bool halts(const mmu::Instruction& instruction);

/// The program, an instruction per line behind its unit, start and end.
std::string to_text(const ArrayNode& node);
/// The programs of all nodes, or of the chosen one.
std::string programs_text(const std::vector<ArrayNode>& nodes, const ArrayNode* chosen);

/// Per unit the intervals of work on some instruction. Per cause the intervals of stalls of the
/// array. The intervals without work.
page::Json to_json(const ArrayNode& node);

}  // namespace triptych::measure
