// Elementwise operators and their chains on the vector unit: tiles of values pass through the
// vector memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/vector_kernel.h"
#include "backends/systolic/lowering/vector_copy.h"
#include "core/ops/fused_elementwise.h"

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

/// The larger or the smaller one, or the NaN among them.
template <bool kLarger>
void emit_extreme(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock y) {
  const VectorBlock nan = program.allocate();
  program.apply(VectorOperation::Equal, nan, b, b);
  program.apply(VectorOperation::Xor, nan, nan, VectorOperand::bits(~0U));
  program.apply(VectorOperation::Greater, y, kLarger ? b : a, kLarger ? a : b);
  program.apply(VectorOperation::Or, nan, nan, y);
  program.apply(VectorOperation::Select, y, b, a, nan);
  program.release(nan);
}

struct UnaryFunction {
  UnaryKind kind;
  Emit emit;
};
struct BinaryFunction {
  BinaryKind kind;
  Emit emit;
};
constexpr std::array kUnaryFunctions{
    UnaryFunction{UnaryKind::Relu, &emit_function<&VectorProgram::relu>},
    UnaryFunction{UnaryKind::Sigmoid, &emit_function<&VectorProgram::sigmoid>},
    UnaryFunction{UnaryKind::Exp, &emit_function<&VectorProgram::exp>},
    UnaryFunction{UnaryKind::Log, &emit_function<&VectorProgram::log>},
    UnaryFunction{UnaryKind::Sqrt, &emit_function<&VectorProgram::square_root>},
    UnaryFunction{UnaryKind::Reciprocal, &emit_function<&VectorProgram::reciprocal>},
    UnaryFunction{UnaryKind::Neg, &emit_function<&VectorProgram::negate>},
    UnaryFunction{UnaryKind::Abs, &emit_function<&VectorProgram::absolute>}};
constexpr std::array kBinaryFunctions{
    BinaryFunction{BinaryKind::Add, &emit_operation<VectorOperation::Add>},
    BinaryFunction{BinaryKind::Sub, &emit_operation<VectorOperation::Subtract>},
    BinaryFunction{BinaryKind::Mul, &emit_operation<VectorOperation::Multiply>},
    BinaryFunction{BinaryKind::Div, &emit_quotient},
    BinaryFunction{BinaryKind::Max, &emit_extreme<true>},
    BinaryFunction{BinaryKind::Min, &emit_extreme<false>},
    BinaryFunction{BinaryKind::ReluGradient, &emit_relu_gradient}};

/// nullptr: the vector unit has no program for it.
Emit emit_of(const ChainStep& step) {
  const auto find = [](const auto& functions, auto kind) -> Emit {
    const auto found = std::ranges::find(functions, kind, [](const auto& f) { return f.kind; });
    return found == functions.end() ? nullptr : found->emit;
  };
  return step.unary ? find(kUnaryFunctions, step.unary->kind) : find(kBinaryFunctions, step.binary);
}

/// A single operator is a chain of one. Empty: it is no link of a chain.
std::vector<ChainStep> chain_of(const KernelQuery& query) {
  if (query.op.name() == FusedElementwise::kName)
    return query.as<FusedElementwise>().chain(query.inputs.size());
  std::vector<TensorSpec> specs;
  for (const Operand& operand : query.inputs) specs.push_back(operand.spec);
  auto step = chain_step(query.op, specs);
  if (!step) return {};
  if (!step->unary) step->b = 1;
  return {*step};
}

/// Blocks of the largest function, and those of its operands and its result without the inputs.
constexpr std::uint32_t kFunctionBlocks = 7, kResults = 2;

/// Where a program finds an input: tile by tile in DRAM, or one value for all.
struct ChainInput {
  bool is_one_value = false;
  std::optional<StridedView> repeated = {};  ///< it is written out into the scratch memory first
  std::uint64_t scratch = 0;                 ///< its offset there
};

std::vector<ChainInput> inputs_of(const KernelQuery& query) {
  const Shape& y = query.outputs[0].spec.shape;
  std::vector<ChainInput> inputs;
  std::uint64_t scratch = 0;
  for (const Operand& operand : query.inputs) {
    const Shape& x = operand.spec.shape;
    ChainInput& input = inputs.emplace_back();
    if (x.elements() == y.elements()) continue;
    input.is_one_value = x.elements() == 1;
    if (input.is_one_value) continue;
    input.repeated = broadcast_view(dense_view(x), y);
    input.scratch = scratch;
    scratch += static_cast<std::uint64_t>(4 * y.elements());
  }
  return inputs;
}

struct ChainPlanner {
  static Verdict accepts(const KernelQuery& query) {
    const auto chain = chain_of(query);
    const auto has_program = [](const ChainStep& step) { return emit_of(step) != nullptr; };
    if (chain.empty() || !std::ranges::all_of(chain, has_program))
      return Verdict::no("the vector unit has no program of the function");
    return accepts_vectors(query);
  }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape shape = query.outputs[0].spec.shape;
    const std::int64_t values = shape.elements();
    const auto chain = chain_of(query);
    const auto inputs = inputs_of(query);
    const auto count = static_cast<std::uint32_t>(inputs.size());
    VectorTask task = {.blocks = count + kResults + kFunctionBlocks,
                       .single_rows = count,
                       .rows = vector_rows_of(values, machine)};
    for (const ChainInput& input : inputs)
      if (input.repeated) task.scratch_bytes += 4 * values;
    task.emit = [=](VectorProgram& program, const VectorAddresses& at) {
      const auto addresses = write_out(program, at, inputs, shape);
      const auto operands = load_single_values(program, at, inputs);
      const std::array results{program.allocate(), program.allocate()};
      for_each_tile(program, values, [&](std::int64_t first, std::int64_t tile) {
        const auto offset = static_cast<std::uint64_t>(4 * first);
        for (std::size_t i = 0; i < inputs.size(); ++i)
          if (!inputs[i].is_one_value)
            program.load(addresses[i] + offset, tile, program.lanes(), operands[i]);
        const VectorBlock y = run(program, chain, operands, results);
        program.store(y, tile, program.lanes(), at.outputs[0] + offset);
      });
    };
    return task;
  }

 private:
  /// The addresses of the inputs, those that repeat values written out in full.
  static std::vector<std::uint64_t> write_out(VectorProgram& program, const VectorAddresses& at,
                                              const std::vector<ChainInput>& inputs,
                                              const Shape& shape) {
    std::vector<std::uint64_t> addresses = at.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].repeated) continue;
      addresses[i] = at.scratch + inputs[i].scratch;
      copy_view(program, *inputs[i].repeated, at.inputs[i], dense_view(shape), addresses[i]);
    }
    return addresses;
  }

  /// The blocks of the inputs.
  static std::vector<VectorBlock> load_single_values(VectorProgram& program,
                                                     const VectorAddresses& at,
                                                     const std::vector<ChainInput>& inputs) {
    std::vector<VectorBlock> operands;
    program.use_rows(1);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool repeats = inputs[i].is_one_value;
      operands.push_back(repeats ? program.allocate(1).repeat() : program.allocate());
      if (!repeats) continue;
      program.load(at.inputs[i], 1, 1, operands[i]);
      program.broadcast(operands[i], operands[i]);
    }
    return operands;
  }

  /// The block of the last result. The two blocks take turns.
  static VectorBlock run(VectorProgram& program, const std::vector<ChainStep>& chain,
                         const std::vector<VectorBlock>& operands,
                         const std::array<VectorBlock, kResults>& results) {
    VectorBlock previous = operands[0];
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const auto operand = [&](int number) {
        return number == ChainStep::kPrevious ? previous
                                              : operands[static_cast<std::size_t>(number)];
      };
      const VectorBlock y = results[i % kResults];
      emit_of(chain[i])(program, operand(chain[i].a), operand(chain[i].b), y);
      previous = y;
    }
    return previous;
  }
};

}  // namespace

void add_elementwise_kernels(KernelLists& lists) {
  for (const UnaryFunction& function : kUnaryFunctions)
    lists.vector.push_back(vector_entry<ChainPlanner>(Unary(function.kind).name()));
  for (const BinaryFunction& function : kBinaryFunctions)
    lists.vector.push_back(vector_entry<ChainPlanner>(Binary(function.kind).name()));
  lists.vector.push_back(vector_entry<ChainPlanner>(FusedElementwise::kName));
}

}  // namespace triptych::systolic
