// A chain of elementwise operators, block by block: a block of intermediate values stays in the
// nearest cache. The functions of rows are those of the operators' own kernels.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/fused_elementwise.h"

#include <span>

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
  bool begins_ramp = false;  ///< it and the next two are a ramp
};

/// Steps of a ramp, as in HardSigmoid and HardSwish: Mul(., i), Add(., j), Clip(.).
constexpr std::size_t kRampSteps = 3;

bool is_ramp(std::span<const ChainStep> steps) {
  const auto is = [](const ChainStep& step, BinaryKind kind) {
    return !step.unary && step.binary == kind && step.a == ChainStep::kPrevious && step.b >= 0;
  };
  return steps.size() >= kRampSteps && is(steps[0], BinaryKind::Mul) &&
         is(steps[1], BinaryKind::Add) && steps[2].unary && steps[2].unary->kind == UnaryKind::Clip;
}

/// The three steps of a ramp in one pass.
void ramp_row(const float* x, float factor, float term, const scalar::UnaryParameters& limits,
              float* y, std::int64_t count) {
  simd([=] {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const float product = scalar::binary<BinaryKind::Mul>(x[i], factor);
      const float sum = scalar::binary<BinaryKind::Add>(product, term);
      y[i] = scalar::unary<UnaryKind::Clip>(sum, limits);
    }
  });
}

Step prepared(const ChainStep& step) {
  if (!step.unary) return {.binary = row_of(step.binary, DType::F32), .a = step.a, .b = step.b};
  const Unary& op = *step.unary;
  return {.unary = row_of(op, DType::F32), .parameters = {op.alpha, op.min, op.max}, .a = step.a};
}

std::int64_t chain_operations(std::span<const ChainStep> chain) {
  std::int64_t operations = 0;
  for (const auto& step : chain) operations += step.unary ? operations_of(*step.unary) : 1;
  return operations;
}

class ChainKernel : public Kernel {
 public:
  ChainKernel(const KernelQuery& query, Device&)
      : ChainKernel(query, query.as<FusedElementwise>().chain(query.inputs.size())) {}

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

  ChainKernel(const KernelQuery& query, std::span<const ChainStep> chain)
      : rows_(query, chain_operations(chain)) {
    for (std::size_t i = 0; i < chain.size(); ++i) {
      steps_.push_back(prepared(chain[i]));
      steps_.back().begins_ramp = is_ramp(chain.subspan(i));
    }
  }

  static const float* floats(const std::byte* x) { return reinterpret_cast<const float*>(x); }

  /// y may be an input: only the last step writes it.
  void run_block(const Inputs& inputs, std::byte* y, std::int64_t count) const {
    alignas(kAlignment) std::byte values[kRowBlock * kFloatBytes];
    RowInput previous = inputs[0];
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto& step = steps_[i];
      const auto operand = [&](int number) {
        return number == ChainStep::kPrevious ? previous : inputs[static_cast<std::size_t>(number)];
      };
      const auto [a, a_stride] = operand(step.a);
      if (step.begins_ramp && a_stride == 1) {
        const auto factor = operand(step.b), term = operand(steps_[i + 1].b);
        if (factor.stride == 0 && term.stride == 0) {
          i += kRampSteps - 1;
          auto* to = i + 1 == steps_.size() ? y : values;
          ramp_row(floats(a), *floats(factor.x), *floats(term.x), steps_[i].parameters,
                   reinterpret_cast<float*>(to), count);
          previous = {to, 1};
          continue;
        }
      }
      auto* to = i + 1 == steps_.size() ? y : values;
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
