// Softmax and its logarithm on the vector unit.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/softmax.h"

#include <algorithm>
#include <array>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_softmax.h"

namespace triptych::systolic {

using mmu::VectorOperation;

void find_largest(VectorProgram& program, const VectorLines& lines, const LineTile& tile,
                  std::uint64_t x, VectorBlock largest) {
  program.load(tile.address(x, 0), tile.lines, program.lanes(), largest);
  const VectorBlock other = program.allocate();
  for (std::int64_t i = 1; i < lines.elements(); ++i) {
    program.load(tile.address(x, i), tile.lines, program.lanes(), other);
    program.apply(VectorOperation::Larger, largest, other, largest);
  }
  program.release(other);
}

void sum_exponentials(VectorProgram& program, const VectorLines& lines, const LineTile& tile,
                      std::uint64_t x, VectorBlock largest, VectorBlock sum,
                      const ExponentialVisitor& visitor) {
  const VectorBlock value = program.allocate();
  fold_lines(
      program, lines.elements(),
      [&](std::int64_t element, VectorBlock e) {
        program.load(tile.address(x, element), tile.lines, program.lanes(), value);
        if (visitor.loaded) visitor.loaded(element, value);
        program.apply(VectorOperation::Subtract, value, value, largest);
        program.exp(value, e);
        if (visitor.computed) visitor.computed(element, e);
      },
      [&](VectorBlock a, VectorBlock b) { program.apply(VectorOperation::Add, a, a, b); }, sum);
  program.release(value);
}

namespace {

/// Writes the elements of one tile with known `largest` and `sum`.
using EmitElements = void (*)(VectorProgram& program, const VectorLines& lines,
                              const LineTile& tile, std::uint64_t x, std::uint64_t y,
                              VectorBlock largest, VectorBlock sum);

/// y has the exponentials and becomes their shares of the sum.
void write_shares(VectorProgram& program, const VectorLines& lines, const LineTile& tile,
                  std::uint64_t, std::uint64_t y, VectorBlock, VectorBlock sum) {
  const VectorDivisor divisor = program.prepare(sum);
  const VectorBlock e = program.allocate(), share = program.allocate();
  for (std::int64_t i = 0; i < lines.elements(); ++i) {
    program.load(tile.address(y, i), tile.lines, program.lanes(), e);
    program.divide(e, divisor, share);
    program.store(share, tile.lines, program.lanes(), tile.address(y, i));
  }
  for (const VectorBlock block : {e, share}) program.release(block);
  program.release(divisor);
}

/// y = x - largest - log(sum).
void write_logarithms(VectorProgram& program, const VectorLines& lines, const LineTile& tile,
                      std::uint64_t x, std::uint64_t y, VectorBlock largest, VectorBlock sum) {
  const VectorBlock logarithm = program.allocate(), value = program.allocate();
  program.log(sum, logarithm);
  for (std::int64_t i = 0; i < lines.elements(); ++i) {
    program.load(tile.address(x, i), tile.lines, program.lanes(), value);
    program.apply(VectorOperation::Subtract, value, value, largest);
    program.apply(VectorOperation::Subtract, value, value, logarithm);
    program.store(value, tile.lines, program.lanes(), tile.address(y, i));
  }
  for (const VectorBlock block : {logarithm, value}) program.release(block);
}

template <class SoftmaxOp, bool kShares>
struct SoftmaxPlanner {
  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[0].spec.shape.elements() == 0)
      return Verdict::no("the vector unit reduces no empty tensors");
    return accepts_vectors(query);
  }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape& x = query.inputs[0].spec.shape;
    const std::int64_t axis = normalize_axis(query.as<SoftmaxOp>().axis, x.rank());
    const VectorLines lines(AxisLines::along(x, axis), machine);
    VectorTask task = {.blocks = std::max(softmax_blocks(lines.elements()), kQuotientBlocks),
                       .rows = vector_rows_of(lines.lines(), machine),
                       .scratch_bytes = lines.scratch_bytes()};
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      emit(program, at, lines);
    };
    return task;
  }

 private:
  /// Those that write_shares() takes, with `largest` and `sum`.
  static constexpr std::uint32_t kQuotientBlocks = 11;

  static void emit(VectorProgram& program, const VectorAddresses& at, const VectorLines& lines) {
    const std::uint64_t x = lines.gather(program, at.inputs[0], at.scratch);
    const std::uint64_t y = lines.target(at.outputs[0], at.scratch);
    const VectorBlock largest = program.allocate(), sum = program.allocate();
    lines.for_each_tile(program, [&](const LineTile& tile) {
      find_largest(program, lines, tile, x, largest);
      ExponentialVisitor visitor;
      if (kShares)
        visitor.computed = [&](std::int64_t i, VectorBlock e) {
          program.store(e, tile.lines, program.lanes(), tile.address(y, i));
        };
      sum_exponentials(program, lines, tile, x, largest, sum, visitor);
      constexpr EmitElements write = kShares ? &write_shares : &write_logarithms;
      write(program, lines, tile, x, y, largest, sum);
    });
    lines.scatter(program, at.scratch, at.outputs[0]);
  }
};

}  // namespace

void add_softmax_kernels(KernelLists& lists) {
  lists.vector.push_back(vector_entry<SoftmaxPlanner<Softmax, true>>(Softmax::kName));
  lists.vector.push_back(vector_entry<SoftmaxPlanner<LogSoftmax, false>>(LogSoftmax::kName));
}

}  // namespace triptych::systolic
