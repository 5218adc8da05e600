// Reductions on the vector unit, in the stated tree, and ArgMax.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include <algorithm>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_lines.h"
#include "backends/systolic/lowering/vector_copy.h"
#include "backends/systolic/lowering/vector_tree.h"
#include "core/base/reduction.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

/// x with its reduced axes before or behind the others.
StridedView reduced_axes(const Reduce& op, const Shape& x, bool first) {
  const auto reduced = ReduceGeometry::of(op, x).reduced;
  std::vector<std::int64_t> order;
  for (const bool wanted : {first, !first})
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

/// y = y, or the one NaN.
void unite_nans(VectorProgram& program, VectorBlock y) {
  const VectorBlock number = program.allocate();
  program.apply(VectorOperation::Equal, number, y, y);
  program.apply(VectorOperation::Select, y, y, VectorOperand::bits(0x7FC00000), number);
  program.release(number);
}

Verdict accepts_reduction(const KernelQuery& query) {
  if (query.inputs[0].spec.shape.elements() == 0)
    return Verdict::no("the vector unit reduces no empty tensors");
  return accepts_vectors(query);
}

/// Elements of a result side by side in the lanes.
class LineReduction {
 public:
  LineReduction(const Reduce& op, const Shape& x, const mmu::MachineConfig& machine)
      : kind_(op.kind),
        geometry_(ReduceGeometry::of(op, x)),
        copied_(reduced_axes(op, x, true)),
        lines_(lines_of(geometry_, x), machine) {}

  /// The result has enough neighbours for the lanes.
  static bool suits(const Reduce& op, const Shape& x, const mmu::MachineConfig& machine) {
    const auto geometry = ReduceGeometry::of(op, x);
    return geometry.contiguous && 2 * geometry.inner > machine.columns;
  }

  VectorTask task(const mmu::MachineConfig& machine) const {
    // Besides the result: those of the fold with a maximum, or those of a division.
    const std::uint32_t others = std::max(fold_blocks(lines_.elements()) + 2, mean() ? 9U : 0U);
    VectorTask task = {.blocks = 1 + others,
                       .rows = vector_rows_of(lines_.lines(), machine),
                       .scratch_bytes = copy_bytes() + lines_.scratch_bytes()};
    task.emit = [*this](VectorProgram& program, const VectorAddresses& at) { emit(program, at); };
    return task;
  }

 private:
  static AxisLines lines_of(const ReduceGeometry& geometry, const Shape& x) {
    if (!geometry.contiguous) return {1, geometry.count, x.elements() / geometry.count};
    return {geometry.outer, geometry.count, geometry.inner};
  }
  bool mean() const { return kind_ == ReduceKind::Mean; }
  bool sums() const { return mean() || kind_ == ReduceKind::Sum; }
  std::int64_t copy_bytes() const {
    return geometry_.contiguous ? 0 : 4 * copied_.shape.elements();
  }

  void emit(VectorProgram& program, const VectorAddresses& at) const {
    std::uint64_t x = at.inputs[0];
    if (!geometry_.contiguous) {
      x = at.scratch;
      copy_view(program, copied_, at.inputs[0], dense_view(copied_.shape), x);
    }
    x = lines_.gather(program, x, at.scratch + static_cast<std::uint64_t>(copy_bytes()));
    const VectorBlock y = program.allocate();
    lines_.for_each_tile(program, [&](const LineTile& tile) {
      fold(program, tile, x, y);
      VectorBlock result = y;
      if (mean()) {
        result = program.allocate();
        program.divide(y, static_cast<float>(lines_.elements()), result);
        program.release(result);
      }
      program.store(result, tile.lines, program.lanes(), tile.line_address(at.outputs[0]));
    });
  }

  void fold(VectorProgram& program, const LineTile& tile, std::uint64_t x, VectorBlock y) const {
    const auto load = [&](std::int64_t element, VectorBlock value) {
      program.load(tile.address(x, element), tile.lines, program.lanes(), value);
      if (sums() && element % kReductionBlock < kReductionLanes)
        program.apply(VectorOperation::Add, value, value, 0.0F);
    };
    const auto combine = [&](VectorBlock a, VectorBlock b) {
      if (sums())
        program.apply(VectorOperation::Add, a, a, b);
      else
        program.extreme(kind_ == ReduceKind::Max, a, b, a);
    };
    fold_lines(program, lines_.elements(), load, combine, y);
    if (!sums()) unite_nans(program, y);
  }

  ReduceKind kind_;
  ReduceGeometry geometry_;
  StridedView copied_;
  VectorLines lines_;
};

struct ExtremePlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_reduction(query); }
  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    return LineReduction(query.as<Reduce>(), query.inputs[0].spec.shape, machine).task(machine);
  }
};

struct ArgMaxPlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[0].spec.dtype != DType::F32)
      return Verdict::no("the vector unit computes float32");
    if (query.inputs[0].spec.shape.elements() == 0)
      return Verdict::no("the vector unit reduces no empty tensors");
    if (lines_of(query).count > kMostIndices)
      return Verdict::no("the vector unit counts at most 2^24 elements of a line");
    return accepts_converted(query);
  }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const VectorLines lines(lines_of(query), machine);
    const bool last = query.as<ArgMax>().select_last_index;
    VectorTask task = {.blocks = 5,
                       .rows = vector_rows_of(lines.lines(), machine),
                       .scratch_bytes = lines.scratch_bytes(),
                       .converts = true};
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      const std::uint64_t x = lines.gather(program, at.inputs[0], at.scratch);
      const VectorBlock largest = program.allocate(), index = program.allocate();
      const VectorBlock value = program.allocate();
      lines.for_each_tile(program, [&](const LineTile& tile) {
        program.apply(VectorOperation::Fill, index, {}, 0.0F);
        program.load(tile.address(x, 0), tile.lines, program.lanes(), largest);
        for (std::int64_t i = 1; i < lines.elements(); ++i) {
          program.load(tile.address(x, i), tile.lines, program.lanes(), value);
          keep_larger(program, value, last, static_cast<float>(i), largest, index);
        }
        program.store(index, tile.lines, program.lanes(), tile.line_address(at.outputs[0]));
      });
    };
    return task;
  }

 private:
  static constexpr std::int64_t kMostIndices = std::int64_t{1} << 24;

  static AxisLines lines_of(const KernelQuery& query) {
    const Shape& x = query.inputs[0].spec.shape;
    return AxisLines::along(x, normalize_axis(query.as<ArgMax>().axis, x.rank()));
  }

  /// Takes a value over that exceeds the largest, or that ties with it where the last one counts
  /// (core/base/reduction.h).
  static void keep_larger(VectorProgram& program, VectorBlock value, bool last, float number,
                          VectorBlock largest, VectorBlock index) {
    const VectorBlock stays = program.allocate(), other = program.allocate();
    program.apply(VectorOperation::Equal, other, value, value);
    program.apply(VectorOperation::Xor, other, other, VectorOperand::bits(~0U));
    program.apply(VectorOperation::Equal, stays, largest, last ? value : largest);
    program.apply(last ? VectorOperation::Or : VectorOperation::And, other, other, stays);
    program.apply(VectorOperation::Greater, stays, value, largest);
    program.apply(VectorOperation::Or, stays, stays, other);
    program.apply(VectorOperation::Xor, stays, stays, VectorOperand::bits(~0U));
    program.apply(VectorOperation::Select, largest, largest, value, stays);
    program.apply(VectorOperation::Select, index, index, number, stays);
    program.release(other);
    program.release(stays);
  }
};

struct ReducePlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_reduction(query); }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const auto& op = query.as<Reduce>();
    const Shape x = query.inputs[0].spec.shape;
    if (LineReduction::suits(op, x, machine)) return LineReduction(op, x, machine).task(machine);
    const StridedView lines = reduced_axes(op, x, false);
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
                   program.apply(VectorOperation::Move, terms[0], x_rows[0]);
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
    program.apply(VectorOperation::Move, row, quotient);
    program.release(quotient);
    program.resize_blocks(rows);
  }
};

}  // namespace

void add_reduce_kernels(KernelLists& lists) {
  for (const auto kind : {ReduceKind::Sum, ReduceKind::Mean})
    lists.vector.push_back(vector_entry<ReducePlanner>(Reduce(kind).name()));
  for (const auto kind : {ReduceKind::Max, ReduceKind::Min})
    lists.vector.push_back(vector_entry<ExtremePlanner>(Reduce(kind).name()));
  lists.vector.push_back(vector_entry<ArgMaxPlanner>(ArgMax::kName));
}

}  // namespace triptych::systolic
