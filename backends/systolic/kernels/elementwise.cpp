// Elementwise operators on the vector unit: tiles of values pass through the vector memory.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

/// Writes y = f(a, b) into a program. Unary functions leave b alone.
using Emit = void (*)(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock y);

template <VectorOperation kOperation>
void emit_operation(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock y) {
  program.apply(kOperation, y, a, b);
}
template <void (VectorProgram::*kFunction)(VectorBlock, VectorBlock)>
void emit_function(VectorProgram& program, VectorBlock a, VectorBlock, VectorBlock y) {
  (program.*kFunction)(a, y);
}
void emit_quotient(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock y) {
  const VectorDivisor divisor = program.prepare(b);
  program.divide(a, divisor, y);
  program.release(divisor);
}
/// a where b is above 0, otherwise +0.
void emit_relu_gradient(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock y) {
  program.apply(VectorOperation::Greater, y, b, 0.0F);
  program.apply(VectorOperation::Select, y, a, 0.0F, y);
}

/// Blocks of operands, result and the largest function.
constexpr std::uint32_t kElementwiseBlocks = 11;

bool is_one_value(const Operand& operand) { return operand.spec.shape.elements() == 1; }

/// Operands have the shape of the result or one value.
template <Emit kEmit>
struct ElementwisePlanner {
  static Verdict accepts(const KernelQuery& query) {
    for (const Operand& operand : query.inputs)
      if (operand.spec.shape != query.outputs[0].spec.shape && !is_one_value(operand))
        return Verdict::no("the vector unit repeats only single values");
    return accepts_vectors(query);
  }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const std::int64_t values = query.outputs[0].spec.shape.elements();
    std::vector<bool> repeats;
    for (const Operand& operand : query.inputs)
      repeats.push_back(is_one_value(operand) && values != 1);
    VectorTask task = {.blocks = kElementwiseBlocks,
                       .single_rows = static_cast<std::uint32_t>(repeats.size()),
                       .rows = vector_rows_of(values, machine)};
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      std::vector<VectorBlock> operands;
      program.use_rows(1);
      for (std::size_t i = 0; i < repeats.size(); ++i) {
        operands.push_back(repeats[i] ? program.allocate(1).repeat() : program.allocate());
        if (!repeats[i]) continue;
        program.load(at.inputs[i], 1, 1, operands[i]);
        program.broadcast(operands[i], operands[i]);
      }
      const VectorBlock y = program.allocate();
      for_each_tile(program, values, [&](std::int64_t first, std::int64_t count) {
        const auto offset = static_cast<std::uint64_t>(4 * first);
        for (std::size_t i = 0; i < repeats.size(); ++i)
          if (!repeats[i]) program.load(at.inputs[i] + offset, count, program.lanes(), operands[i]);
        kEmit(program, operands.front(), operands.back(), y);
        program.store(y, count, program.lanes(), at.outputs[0] + offset);
      });
    };
    return task;
  }
};

template <Emit kEmit>
KernelEntry entry_of(UnaryKind kind) {
  return vector_entry<ElementwisePlanner<kEmit>>(Unary(kind).name());
}
template <Emit kEmit>
KernelEntry entry_of(BinaryKind kind) {
  return vector_entry<ElementwisePlanner<kEmit>>(Binary(kind).name());
}

}  // namespace

void add_elementwise_kernels(KernelLists& lists) {
  for (const KernelEntry& entry :
       {entry_of<&emit_function<&VectorProgram::relu>>(UnaryKind::Relu),
        entry_of<&emit_function<&VectorProgram::sigmoid>>(UnaryKind::Sigmoid),
        entry_of<&emit_function<&VectorProgram::exp>>(UnaryKind::Exp),
        entry_of<&emit_function<&VectorProgram::log>>(UnaryKind::Log),
        entry_of<&emit_function<&VectorProgram::square_root>>(UnaryKind::Sqrt),
        entry_of<&emit_function<&VectorProgram::reciprocal>>(UnaryKind::Reciprocal),
        entry_of<&emit_function<&VectorProgram::negate>>(UnaryKind::Neg),
        entry_of<&emit_function<&VectorProgram::absolute>>(UnaryKind::Abs),
        entry_of<&emit_operation<VectorOperation::Add>>(BinaryKind::Add),
        entry_of<&emit_operation<VectorOperation::Subtract>>(BinaryKind::Sub),
        entry_of<&emit_operation<VectorOperation::Multiply>>(BinaryKind::Mul),
        entry_of<&emit_quotient>(BinaryKind::Div),
        entry_of<&emit_relu_gradient>(BinaryKind::ReluGradient)})
    lists.vector.push_back(entry);
}

}  // namespace triptych::systolic
