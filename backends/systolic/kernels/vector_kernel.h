// The one kernel of the vector unit: copies operands into the machine's DRAM, runs a program of
// loads, operations and stores, and copies results back. An operator is a planner:
//   struct Planner {
//     static Verdict accepts(const KernelQuery& query);
//     static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine);
//   };
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backends/systolic/lowering/vector_program.h"
#include "backends/systolic/systolic_device.h"

namespace triptych::systolic {

/// Where a node's operands are in DRAM, in bytes. They are float32 there.
struct VectorAddresses {
  std::vector<std::uint64_t> inputs, outputs;
  std::uint64_t parameters = 0, scratch = 0;
};

/// How the vector unit computes a node.
struct VectorTask {
  std::uint32_t blocks = 1;       ///< of the vector memory that are in use at once
  std::uint32_t single_rows = 0;  ///< other rows in use at once, those of constants aside
  std::uint32_t least_rows = 1;   ///< of a block
  std::int64_t rows = 1;          ///< of a block that holds everything
  std::int64_t scratch_bytes = 0;
  std::int64_t parameters = 0;  ///< numbers that `begin` gives
  /// The copies convert operands of other types to float32 and back. Otherwise only operands of
  /// float32 are in DRAM.
  bool converts = false;
  /// Writes the instructions between DRAM and DRAM. Blocks have their most rows at first.
  std::function<void(VectorProgram& program, const VectorAddresses& at)> emit;
  /// Before a run: numbers that only the host knows, such as the step's. Empty: there are none.
  std::function<void(const KernelArgs& args, float* parameters)> begin = {};
};

/// Rows of values that fill the machine's lanes.
std::int64_t vector_rows_of(std::int64_t values, const mmu::MachineConfig& machine);

/// Calls body(first value, values) for the tiles of `values` numbers that lie one after another,
/// and sets the program's rows. A tile fills a block.
void for_each_tile(VectorProgram& program, std::int64_t values,
                   const std::function<void(std::int64_t first, std::int64_t count)>& body);

class VectorKernel : public Kernel, public mmu::ProgramOwner {
 public:
  using Plan = VectorTask (*)(const KernelQuery& query, const mmu::MachineConfig& machine);
  VectorKernel(Plan plan, const KernelQuery& query, Device& device);

  void run(const KernelArgs& args) override;
  std::size_t resident_bytes() const override { return kept_.size() * sizeof(mmu::Instruction); }
  mmu::Program program() const override;
  std::string tiling() const override;
  std::map<std::string, double> counters() const override;

 private:
  /// An operand in DRAM.
  struct Span {
    std::size_t operand;
    std::uint64_t address, bytes;
    DType type;  ///< of the host's values
  };
  void place(std::span<const Operand> operands, std::vector<Span>& spans,
             std::vector<std::uint64_t>& addresses);
  std::uint64_t reserve(std::uint64_t bytes);

  SystolicDevice& device_;
  VectorTask task_;
  std::uint32_t block_rows_ = 1;
  std::vector<float> parameters_;
  std::vector<Span> inputs_, outputs_;
  VectorAddresses at_;
  std::uint64_t dram_bytes_ = 0;
  mmu::Program kept_;                     ///< empty: too long to keep, made again for each run
  std::optional<mmu::Counters> counted_;  ///< in any one run
  RunTotals totals_;
};

/// The entry of an operator for its planner. The host may run what the planner refuses.
template <class Planner>
KernelEntry vector_entry(std::string_view op) {
  KernelEntry entry = {op, "vector", &Planner::accepts,
                       [](const KernelQuery& query, Device& device) {
                         return std::unique_ptr<Kernel>(
                             std::make_unique<VectorKernel>(&Planner::task, query, device));
                       }};
  entry.optional = true;
  return entry;
}

/// Refuses operands that are not dense or not of float32.
Verdict accepts_vectors(const KernelQuery& query);
/// Refuses operands that are not dense, or that VectorTask::converts does not serve.
Verdict accepts_converted(const KernelQuery& query);

}  // namespace triptych::systolic
