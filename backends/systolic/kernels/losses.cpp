// The binary cross-entropy and its gradient on the vector unit.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/losses.h"

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"
#include "backends/systolic/lowering/vector_tree.h"
#include "core/base/reduction.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

/// max(x, 0) - x z + log(1 + e^-|x|).
void binary_cross_entropy(VectorProgram& program, VectorBlock x, VectorBlock z, VectorBlock y) {
  const VectorBlock linear = program.allocate();
  program.apply(VectorOperation::Greater, y, x, 0.0F);
  program.apply(VectorOperation::Select, linear, x, 0.0F, y);
  program.negate(x, y);
  program.fma(linear, y, z, linear);
  program.softplus_of_minus(x, y);
  program.apply(VectorOperation::Add, y, linear, y);
  program.release(linear);
}

struct BinaryCrossEntropyPlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[0].spec.shape.elements() == 0)
      return Verdict::no("the vector unit reduces no empty tensors");
    return accepts_vectors(query);
  }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const std::int64_t values = query.inputs[0].spec.shape.elements();
    VectorTask task = {.blocks = 14,
                       .single_rows = 64,
                       .least_rows = VectorTree::least_rows(machine.columns),
                       .rows = vector_rows_of(values, machine) * kReductionLanes,
                       .scratch_bytes = 4 * machine.columns};
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      const VectorBlock total = program.allocate(1);
      std::vector<TreeBlock> blocks;
      append_blocks(0, values, blocks);
      VectorTree tree(program, at.inputs, 1, at.scratch);
      tree.sum(blocks,
               [&](std::span<const VectorBlock> operands, std::span<const VectorBlock> terms) {
                 binary_cross_entropy(program, operands[0], operands[1], terms[0]);
               },
               {&total, 1});
      program.resize_blocks(1);
      const VectorBlock mean = program.allocate();
      program.divide(total, static_cast<float>(values), mean);
      program.store(mean, 1, 1, at.outputs[0]);
    };
    return task;
  }
};

struct BinaryCrossEntropyGradientPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_vectors(query); }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const std::int64_t values = query.inputs[0].spec.shape.elements();
    VectorTask task = {.blocks = 9, .single_rows = 16, .rows = vector_rows_of(values, machine)};
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      const std::uint32_t rows = program.block_rows();
      program.resize_blocks(1);
      const VectorBlock dloss = program.allocate(), scale = program.allocate();
      program.load(at.inputs[2], 1, 1, dloss);
      program.divide(dloss, static_cast<float>(values), scale);
      program.broadcast(scale, scale);
      program.resize_blocks(rows);
      const VectorBlock x = program.allocate(), z = program.allocate(), y = program.allocate();
      for_each_tile(program, values, [&](std::int64_t first, std::int64_t count) {
        const auto offset = static_cast<std::uint64_t>(4 * first);
        program.load(at.inputs[0] + offset, count, program.lanes(), x);
        program.load(at.inputs[1] + offset, count, program.lanes(), z);
        program.sigmoid(x, y);
        program.apply(VectorOperation::Subtract, y, y, z);
        program.apply(VectorOperation::Multiply, y, y, scale.repeat());
        program.store(y, count, program.lanes(), at.outputs[0] + offset);
      });
    };
    return task;
  }
};

}  // namespace

void add_losses_kernels(KernelLists& lists) {
  lists.vector.push_back(
      vector_entry<BinaryCrossEntropyPlanner>(BinaryCrossEntropyWithLogits::kName));
  lists.vector.push_back(
      vector_entry<BinaryCrossEntropyGradientPlanner>(BinaryCrossEntropyWithLogitsGradient::kName));
}

}  // namespace triptych::systolic
