// A chain of elementwise operators, block by block: a block of intermediate values stays in the
// nearest cache. The functions of rows are those of the operators' own kernels.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/fused_elementwise.h"

#include "backends/cpu/kernels/elementwise_rows.h"
#include "backends/cpu/kernels/kernels.h"

namespace triptych::cpu {
namespace {

constexpr std::size_t kMostInputs = FusedElementwise::kMostInputs;
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
  const Unary op(*step.unary);
  return {.unary = row_of(op, DType::F32), .parameters = {op.alpha, op.min, op.max}, .a = step.a};
}

/// Input k for a block of y: an element for each of y, or one for all of them.
struct Input {
  const std::byte* x;
  std::int64_t stride;
};
using Inputs = std::array<Input, kMostInputs>;

class ChainKernel : public Kernel {
 public:
  ChainKernel(const KernelQuery& query, Device&)
      : inputs_(query.inputs.size()), loop_(query.outputs[0].spec.shape, strides_of(query)) {
    for (const auto& step : query.as<FusedElementwise>().chain(inputs_)) {
      steps_.push_back(prepared(step));
    }
  }

  static Verdict accepts(const KernelQuery&) { return Verdict::yes(); }

  void run(const KernelArgs& args) override {
    if (loop_.has_short_rows()) return run_rows(args);
    loop_.run([&](const auto& at, std::int64_t count) {
      for (std::int64_t begin = 0; begin < count; begin += kRowBlock) {
        Inputs inputs{};
        for (std::size_t k = 0; k < inputs_; ++k) {
          const auto stride = loop_.row_stride(k + 1);
          inputs[k] = {args.inputs[k] + (at[k + 1] + begin * stride) * kFloatBytes, stride};
        }
        run_block(inputs, args.outputs[0] + (at[0] + begin) * kFloatBytes,
                  std::min(kRowBlock, count - begin));
      }
    });
  }

 private:
  static std::array<Dims, kMostInputs + 1> strides_of(const KernelQuery& query) {
    const auto& y = query.outputs[0].spec.shape;
    std::array<Dims, kMostInputs + 1> strides;
    strides.fill(Dims(static_cast<std::size_t>(y.rank()), 0));
    strides[0] = operand_strides(query.outputs[0], y);
    for (std::size_t k = 0; k < query.inputs.size(); ++k) {
      strides[k + 1] = operand_strides(query.inputs[k], y);
    }
    return strides;
  }

  void run_rows(const KernelArgs& args) const {
    loop_.run_rows([&](const auto& at, std::int64_t rows) {
      alignas(kAlignment) std::byte buffers[kMostInputs][kRowBlock * kFloatBytes];
      Inputs inputs{};
      for (std::size_t k = 0; k < inputs_; ++k) {
        const auto* x = args.inputs[k] + at[k + 1] * kFloatBytes;
        inputs[k] = {gathered(x, loop_.group(k + 1, rows), kFloatBytes, buffers[k]), 1};
      }
      run_block(inputs, args.outputs[0] + at[0] * kFloatBytes, rows * loop_.row_size());
    });
  }

  /// y may be an input: only the last step writes it.
  void run_block(const Inputs& inputs, std::byte* y, std::int64_t count) const {
    alignas(kAlignment) std::byte values[kRowBlock * kFloatBytes];
    Input previous = inputs[0];
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

  std::size_t inputs_;
  ElementwiseLoop<kMostInputs + 1> loop_;
  std::vector<Step> steps_;
};

}  // namespace

void add_fused_elementwise_kernels(KernelList& list) {
  list.push_back(kernel_entry<ChainKernel>(FusedElementwise::kName, "chain"));
}

}  // namespace triptych::cpu
