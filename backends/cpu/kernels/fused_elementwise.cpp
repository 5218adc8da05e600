// A chain of elementwise operators, block by block: a block of intermediate values stays in the
// nearest cache. The functions of rows are those of the operators' own kernels.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/fused_elementwise.h"

#include "backends/cpu/kernels/elementwise_rows.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/node_rows.h"

namespace triptych::cpu {
namespace {

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

/// A ChainStep with the function of its rows.
struct Step {
  UnaryRow unary = nullptr;  ///< else `binary`
  BinaryRow binary = nullptr;
  scalar::UnaryParameters parameters;
  int a = ChainStep::kPrevious, b = ChainStep::kPrevious;
};

Step prepared(const ChainStep& step) {
  if (!step.unary) return {.binary = row_of(step.binary, DType::F32), .a = step.a, .b = step.b};
  const Unary& op = *step.unary;
  return {.unary = row_of(op, DType::F32), .parameters = {op.alpha, op.min, op.max}, .a = step.a};
}

class ChainKernel : public Kernel {
 public:
  ChainKernel(const KernelQuery& query, Device&) : rows_(query) {
    for (const auto& step : query.as<FusedElementwise>().chain(query.inputs.size())) {
      steps_.push_back(prepared(step));
    }
  }

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    rows_.run_gathered(args, [&](Inputs inputs, std::byte* y, std::int64_t count) {
      for (; count > 0; count -= kRowBlock, y += kRowBlock * kFloatBytes) {
        run_block(inputs, y, std::min(kRowBlock, count));
        for (auto& [x, stride] : inputs) x += kRowBlock * stride * kFloatBytes;
      }
    });
  }

 private:
  using Rows = NodeRows<FusedElementwise::kMostInputs, sizeof(float)>;
  using Inputs = Rows::Inputs;

  /// y may be an input: only the last step writes it.
  void run_block(const Inputs& inputs, std::byte* y, std::int64_t count) const {
    alignas(kAlignment) std::byte values[kRowBlock * kFloatBytes];
    RowInput previous = inputs[0];
    for (const auto& step : steps_) {
      const auto operand = [&](int number) {
        return number == ChainStep::kPrevious ? previous : inputs[static_cast<std::size_t>(number)];
      };
      auto* to = &step == &steps_.back() ? y : values;
      const auto [a, a_stride] = operand(step.a);
      if (step.unary != nullptr) {
        step.unary(a, to, a_stride == 0 ? 1 : count, step.parameters);
        previous = {to, a_stride};
      } else {
        const auto [b, b_stride] = operand(step.b);
        step.binary({a, b, to, a_stride, b_stride}, count);
        previous = {to, 1};
      }
    }
  }

  Rows rows_;
  std::vector<Step> steps_;
};

}  // namespace

void add_fused_elementwise_kernels(KernelList& list) {
  list.push_back(kernel_entry<ChainKernel>(FusedElementwise::kName, "chain"));
}

}  // namespace triptych::cpu
