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
using Emit = void (*)(VectorProgram& program, const ChainStep& step, VectorBlock a, VectorBlock b,
                      VectorBlock y);

template <VectorOperation kOperation>
void emit_operation(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                    VectorBlock y) {
  program.apply(kOperation, y, a, b);
}
template <void (VectorProgram::*kFunction)(VectorBlock, VectorBlock)>
void emit_function(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock,
                   VectorBlock y) {
  (program.*kFunction)(a, y);
}
void emit_quotient(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                   VectorBlock y) {
  const VectorDivisor divisor = program.prepare(b);
  program.divide(a, divisor, y);
  program.release(divisor);
}
/// a where b is above 0, otherwise +0.
void emit_relu_gradient(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                        VectorBlock y) {
  program.apply(VectorOperation::Greater, y, b, 0.0F);
  program.apply(VectorOperation::Select, y, a, 0.0F, y);
}
/// a b (1 - b).
void emit_sigmoid_gradient(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                           VectorBlock y) {
  const VectorBlock rest = program.allocate();
  program.apply(VectorOperation::Subtract, rest, 1.0F, b);
  program.apply(VectorOperation::Multiply, y, a, b);
  program.apply(VectorOperation::Multiply, y, y, rest);
  program.release(rest);
}
/// a (1 - b b).
void emit_tanh_gradient(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                        VectorBlock y) {
  program.negate(b, y);
  program.fma(y, y, b, 1.0F);
  program.apply(VectorOperation::Multiply, y, a, y);
}
/// x where it is above 0, otherwise alpha x.
void emit_leaky_relu(VectorProgram& program, const ChainStep& step, VectorBlock x, VectorBlock,
                     VectorBlock y) {
  const VectorBlock above = program.allocate();
  program.apply(VectorOperation::Greater, above, x, 0.0F);
  program.apply(VectorOperation::Multiply, y, x, step.unary->alpha);
  program.apply(VectorOperation::Select, y, x, y, above);
  program.release(above);
}
/// x where it is above 0, otherwise alpha (e^x - 1).
void emit_elu(VectorProgram& program, const ChainStep& step, VectorBlock x, VectorBlock,
              VectorBlock y) {
  const VectorBlock below = program.allocate(), above = program.allocate();
  program.apply(VectorOperation::Greater, above, x, 0.0F);
  program.apply(VectorOperation::Select, below, 0.0F, x, above);
  program.expm1_of_negative(below, y);
  program.apply(VectorOperation::Multiply, y, y, step.unary->alpha);
  program.apply(VectorOperation::Select, y, x, y, above);
  program.release(above);
  program.release(below);
}
void emit_clip(VectorProgram& program, const ChainStep& step, VectorBlock x, VectorBlock,
               VectorBlock y) {
  const VectorBlock beyond = program.allocate();
  program.apply(VectorOperation::Greater, beyond, step.unary->min, x);
  program.apply(VectorOperation::Select, y, step.unary->min, x, beyond);
  program.apply(VectorOperation::Greater, beyond, y, step.unary->max);
  program.apply(VectorOperation::Select, y, step.unary->max, y, beyond);
  program.release(beyond);
}
void emit_gelu(VectorProgram& program, const ChainStep& step, VectorBlock x, VectorBlock,
               VectorBlock y) {
  step.unary->approximate == "tanh" ? program.gelu_tanh(x, y) : program.gelu(x, y);
}

/// The larger or the smaller one, or the NaN among them.
template <bool kLarger>
void emit_extreme(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                  VectorBlock y) {
  program.extreme(kLarger, a, b, y);
}

/// 1 where the relation holds, otherwise 0. `kSwaps`: b stands before a.
template <bool kSwaps, bool kOrEqual>
void emit_relation(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                   VectorBlock y) {
  const VectorBlock equal = program.allocate();
  program.apply(VectorOperation::Greater, y, kSwaps ? b : a, kSwaps ? a : b);
  if (kOrEqual) {
    program.apply(VectorOperation::Equal, equal, a, b);
    program.apply(VectorOperation::Or, y, y, equal);
  }
  program.apply(VectorOperation::And, y, y, 1.0F);
  program.release(equal);
}
void emit_equality(VectorProgram& program, const ChainStep&, VectorBlock a, VectorBlock b,
                   VectorBlock y) {
  program.apply(VectorOperation::Equal, y, a, b);
  program.apply(VectorOperation::And, y, y, 1.0F);
}

/// A function, and the blocks that it takes besides its operands and its result.
struct UnaryFunction {
  UnaryKind kind;
  Emit emit;
  std::uint32_t blocks = 0;
};
struct BinaryFunction {
  BinaryKind kind;
  Emit emit;
  std::uint32_t blocks = 0;
};
constexpr std::array kUnaryFunctions{
    UnaryFunction{UnaryKind::Relu, &emit_function<&VectorProgram::relu>},
    UnaryFunction{UnaryKind::LeakyRelu, &emit_leaky_relu, 1},
    UnaryFunction{UnaryKind::Sigmoid, &emit_function<&VectorProgram::sigmoid>, 3},
    UnaryFunction{UnaryKind::Tanh, &emit_function<&VectorProgram::tanh>, 9},
    UnaryFunction{UnaryKind::Gelu, &emit_gelu, 6},
    UnaryFunction{UnaryKind::Exp, &emit_function<&VectorProgram::exp>, 2},
    UnaryFunction{UnaryKind::Log, &emit_function<&VectorProgram::log>, 3},
    UnaryFunction{UnaryKind::Sqrt, &emit_function<&VectorProgram::square_root>, 4},
    UnaryFunction{UnaryKind::Reciprocal, &emit_function<&VectorProgram::reciprocal>, 2},
    UnaryFunction{UnaryKind::Neg, &emit_function<&VectorProgram::negate>},
    UnaryFunction{UnaryKind::Abs, &emit_function<&VectorProgram::absolute>},
    UnaryFunction{UnaryKind::Sign, &emit_function<&VectorProgram::sign>, 1},
    UnaryFunction{UnaryKind::Erf, &emit_function<&VectorProgram::erf>, 4},
    UnaryFunction{UnaryKind::Clip, &emit_clip, 1},
    UnaryFunction{UnaryKind::Elu, &emit_elu, 5},
    UnaryFunction{UnaryKind::Softplus, &emit_function<&VectorProgram::softplus>, 9},
    UnaryFunction{UnaryKind::Softsign, &emit_function<&VectorProgram::softsign>, 7}};
constexpr std::array kBinaryFunctions{
    BinaryFunction{BinaryKind::Add, &emit_operation<VectorOperation::Add>},
    BinaryFunction{BinaryKind::Sub, &emit_operation<VectorOperation::Subtract>},
    BinaryFunction{BinaryKind::Mul, &emit_operation<VectorOperation::Multiply>},
    BinaryFunction{BinaryKind::Div, &emit_quotient, 7},
    BinaryFunction{BinaryKind::Max, &emit_extreme<true>, 2},
    BinaryFunction{BinaryKind::Min, &emit_extreme<false>, 2},
    BinaryFunction{BinaryKind::Equal, &emit_equality},
    BinaryFunction{BinaryKind::Less, &emit_relation<true, false>, 1},
    BinaryFunction{BinaryKind::LessOrEqual, &emit_relation<true, true>, 1},
    BinaryFunction{BinaryKind::Greater, &emit_relation<false, false>, 1},
    BinaryFunction{BinaryKind::GreaterOrEqual, &emit_relation<false, true>, 1},
    BinaryFunction{BinaryKind::ReluGradient, &emit_relu_gradient},
    BinaryFunction{BinaryKind::SigmoidGradient, &emit_sigmoid_gradient, 1},
    BinaryFunction{BinaryKind::TanhGradient, &emit_tanh_gradient}};

/// Calls use(function) for the row of a step, where the vector unit has a program of it.
template <class Use>
bool with_function(const ChainStep& step, const Use& use) {
  const auto find = [&](const auto& functions, auto kind) {
    const auto found = std::ranges::find(functions, kind, [](const auto& f) { return f.kind; });
    if (found == functions.end()) return false;
    use(*found);
    return true;
  };
  return step.unary ? find(kUnaryFunctions, step.unary->kind) : find(kBinaryFunctions, step.binary);
}

/// A single operator is a chain of one.
std::vector<ChainStep> chain_of(const KernelQuery& query) {
  if (query.op.name() == FusedElementwise::kName)
    return query.as<FusedElementwise>().chain(query.inputs.size());
  ChainStep step;
  if (const auto* unary = dynamic_cast<const Unary*>(&query.op)) {
    step.unary = *unary;
  } else {
    step.binary = query.as<Binary>().kind;
    step.b = 1;
  }
  step.a = 0;
  return {step};
}

constexpr std::uint32_t kResults = 2;

/// Blocks of the largest function.
std::uint32_t function_blocks(const std::vector<ChainStep>& chain) {
  std::uint32_t most = 0;
  for (const ChainStep& step : chain)
    with_function(step, [&](const auto& function) { most = std::max(most, function.blocks); });
  return most;
}

/// Rows for the constants of the steps, beyond those that each program has.
constexpr std::uint32_t kChainConstants = 24;

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
    const auto has_program = [](const ChainStep& step) {
      return with_function(step, [](const auto&) {});
    };
    if (!std::ranges::all_of(chain, has_program))
      return Verdict::no("the vector unit has no program of the function");
    if (query.inputs[0].spec.dtype != DType::F32)
      return Verdict::no("the vector unit computes float32");
    return accepts_converted(query);
  }

  static VectorTask task(const KernelQuery& query, const mmu::MachineConfig& machine) {
    const Shape shape = query.outputs[0].spec.shape;
    const std::int64_t values = shape.elements();
    const auto chain = chain_of(query);
    const auto inputs = inputs_of(query);
    const auto count = static_cast<std::uint32_t>(inputs.size());
    const auto more = chain.size() > 1 ? kChainConstants : 0;
    VectorTask task = {.blocks = count + kResults + std::max(1U, function_blocks(chain)),
                       .single_rows = count + more,
                       .rows = vector_rows_of(values, machine),
                       .converts = true};
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
      with_function(chain[i], [&](const auto& function) {
        function.emit(program, chain[i], operand(chain[i].a), operand(chain[i].b), y);
      });
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
