// Sums and means on the vector unit, in the stated tree.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"
#include "backends/systolic/lowering/vector_copy.h"
#include "backends/systolic/lowering/vector_tree.h"
#include "core/base/reduction.h"

namespace triptych::systolic {
namespace {

/// x with its reduced axes behind the others: the values of a result become neighbours.
StridedView reduced_last(const Reduce& op, const Shape& x) {
  const auto reduced = ReduceGeometry::of(op, x).reduced;
  std::vector<std::int64_t> order;
  for (const bool wanted : {false, true})
    for (std::size_t axis = 0; axis < reduced.size(); ++axis)
      if (reduced[axis] == wanted) order.push_back(static_cast<std::int64_t>(axis));
  return transposed_view(dense_view(x), order);
}

bool is_dense(const StridedView& view) {
  std::int64_t stride = 1;
  for (std::size_t axis = view.strides.size(); axis-- > 0;) {
    if (view.shape.dims()[axis] != 1 && view.strides[axis] != stride) return false;
    stride *= view.shape.dims()[axis];
  }
  return true;
}

struct ReducePlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[0].spec.shape.elements() == 0)
      return Verdict::no("the vector unit reduces no empty tensors");
    return accepts_vectors(query);
  }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const auto& op = query.as<Reduce>();
    const Shape x = query.inputs[0].spec.shape;
    const StridedView lines = reduced_last(op, x);
    const std::int64_t outputs = query.outputs[0].spec.shape.elements();
    const std::int64_t length = x.elements() / outputs;
    const bool in_place = is_dense(lines), mean = op.kind == ReduceKind::Mean;
    const std::int64_t copy_bytes = in_place ? 0 : 4 * x.elements();
    VectorTask task = {.blocks = 4,
                       .single_rows = 64,
                       .least_rows = VectorTree::least_rows(machine.columns),
                       .rows = vector_rows_of(x.elements(), machine) * kReductionLanes,
                       .scratch_bytes = copy_bytes + 4 * machine.columns};
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      std::uint64_t values = at.inputs[0];
      if (!in_place) {
        values = at.scratch;
        copy_view(program, lines, at.inputs[0], dense_view(lines.shape), values);
      }
      VectorTree tree(program, {values}, 1, at.scratch + static_cast<std::uint64_t>(copy_bytes));
      const VectorBlock total = program.allocate(1);
      for (std::int64_t line = 0; line < outputs; ++line) {
        std::vector<TreeBlock> blocks;
        append_blocks(line * length, length, blocks);
        tree.sum(blocks,
                 [&](std::span<const VectorBlock> x_rows, std::span<const VectorBlock> terms) {
                   program.apply(mmu::VectorOperation::Move, terms[0], x_rows[0]);
                 },
                 {&total, 1});
        if (mean) divide_row(program, total, static_cast<float>(length));
        program.store(total, 1, 1, at.outputs[0] + static_cast<std::uint64_t>(4 * line));
      }
    };
    return task;
  }

 private:
  static void divide_row(VectorProgram& program, VectorBlock row, float number) {
    const std::uint32_t rows = program.block_rows();
    program.resize_blocks(1);
    const VectorBlock quotient = program.allocate();
    program.divide(row, number, quotient);
    program.apply(mmu::VectorOperation::Move, row, quotient);
    program.release(quotient);
    program.resize_blocks(rows);
  }
};

}  // namespace

void add_reduce_kernels(KernelLists& lists) {
  for (const auto kind : {ReduceKind::Sum, ReduceKind::Mean})
    lists.vector.push_back(vector_entry<ReducePlanner>(Reduce(kind).name()));
}

}  // namespace triptych::systolic
