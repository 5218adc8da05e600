// Arithmetics of convolution and its transpose, as parameters of their kernels: the packing of
// operands, and the final operation on a complete sum (Finish).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "backends/cpu/gemm/pack.h"
#include "core/base/exact_math.h"
#include "core/base/quantized_math.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// Input `index` from `offset` on, or nullptr when it was omitted.
template <class T>
const T* optional_input(const KernelArgs& args, std::size_t index, std::int64_t offset) {
  return index < args.inputs.size() ? args.in<T>(index) + offset : nullptr;
}

/// A float32 sum: a bias is added and negative values are cut off where asked.
class FloatFinish {
 public:
  using Sum = float;
  using Out = float;

  /// Finishes the channels from `channel` on.
  FloatFinish(const KernelArgs& args, std::int64_t channel, bool relu)
      : bias_(optional_input<float>(args, 2, channel)), relu_(relu) {}

  /// Calls body(finish) with the final operation for sums of this channel.
  template <class Body>
  [[gnu::always_inline]] void with(std::int64_t channel, const Body& body) const {
    const float bias = bias_ == nullptr ? 0 : bias_[channel];
    if (bias_ == nullptr) {
      relu_ ? body([](float sum) { return exact::relu(sum); })
            : body([](float sum) { return sum; });
    } else if (relu_) {
      body([=](float sum) { return exact::relu(exact::canonical(sum + bias)); });
    } else {
      body([=](float sum) { return exact::canonical(sum + bias); });
    }
  }

  const float* bias() const { return bias_; }  ///< nullptr: none
  bool relu() const { return relu_; }

 private:
  const float* bias_;
  bool relu_;
};

/// An int32 sum that is the result, after bias and cut (core/ops/quantized_conv.h).
class SumFinish {
 public:
  using Sum = std::int32_t;
  using Out = std::int32_t;

  SumFinish(const KernelArgs& args, std::int64_t channel, bool relu)
      : bias_(optional_input<std::int32_t>(args, 2, channel)), relu_(relu) {}

  template <class Body>
  [[gnu::always_inline]] void with(std::int64_t channel, const Body& body) const {
    const auto bias = bias_ == nullptr ? 0 : bias_[channel];
    const auto low = relu_ ? 0 : std::numeric_limits<std::int32_t>::min();
    body([=](std::int32_t sum) { return std::max(wrapping_add(sum, bias), low); });
  }

 private:
  const std::int32_t* bias_;
  bool relu_;
};

/// An int32 sum that becomes int8.
class RequantizeFinish {
 public:
  using Sum = std::int32_t;
  using Out = std::int8_t;

  RequantizeFinish(const KernelArgs& args, std::int64_t channel, bool relu)
      : bias_(args.in<std::int32_t>(2) + channel),
        multiplier_(args.in<std::int32_t>(3) + channel),
        shift_(args.in<std::int32_t>(4) + channel),
        relu_(relu) {}

  template <class Body>
  [[gnu::always_inline]] void with(std::int64_t channel, const Body& body) const {
    const auto bias = bias_[channel], multiplier = multiplier_[channel], shift = shift_[channel];
    const std::int64_t low = relu_ ? 0 : -128;
    body([=](std::int32_t sum) {
      const auto value = requantize(wrapping_add(sum, bias), multiplier, shift);
      return saturate_to_i8(std::max(value, low));
    });
  }

  const std::int32_t* bias() const { return bias_; }
  const std::int32_t* multiplier() const { return multiplier_; }
  const std::int32_t* shift() const { return shift_; }
  bool relu() const { return relu_; }

 private:
  const std::int32_t* bias_;
  const std::int32_t* multiplier_;
  const std::int32_t* shift_;
  bool relu_;
};

/// float32, operands perhaps rounded to bfloat16.
struct FloatArithmetic {
  using Element = float;
  using Word = float;
  using Finish = FloatFinish;

  Rounding rounding = Rounding::None;

  explicit FloatArithmetic(Contract contract) : rounding(rounding_of(contract)) {}
  static std::int64_t depth(std::int64_t channels, std::int64_t taps) { return channels * taps; }
  void pack(const BasicRowSource<float>& source, std::int64_t m, float* to) const {
    pack_rows(source, m, to, rounding);
  }
  void pack(const PatchGrid& grid, const float* x, Range k, Range n, float* panels) const {
    pack_patches(grid, x, k, n, panels, rounding);
  }
};

/// Operands rounded to bfloat16, in words of two k.
struct DotArithmetic {
  using Element = float;
  using Word = DotWord;
  using Finish = FloatFinish;

  explicit DotArithmetic(Contract) {}
  static std::int64_t depth(std::int64_t channels, std::int64_t taps) {
    return dot_depth(channels * taps);
  }
  void pack(const BasicRowSource<float>& source, std::int64_t m, DotWord* to) const {
    pack_dot_rows(source, m, to);
  }
  void pack(const PatchGrid& grid, const float* x, Range k, Range n, DotWord* panels) const {
    pack_dot_patches(grid, x, k, n, panels);
  }
};

/// int8 operands and wrapping int32 sums, for every contract.
template <class FinishT>
struct IntegerArithmetic {
  using Element = std::int8_t;
  using Word = PairWord;
  using Finish = FinishT;

  explicit IntegerArithmetic(Contract) {}
  static std::int64_t depth(std::int64_t channels, std::int64_t taps) {
    return pair_depth(channels, taps);
  }
  void pack(const BasicRowSource<std::int8_t>& source, std::int64_t m, PairWord* to) const {
    pack_pair_rows(source, m, to);
  }
  void pack(const PatchGrid& grid, const std::int8_t* x, Range k, Range n, PairWord* panels) const {
    pack_pair_patches(grid, x, k, n, panels);
  }
};
using SumArithmetic = IntegerArithmetic<SumFinish>;
using RequantizeArithmetic = IntegerArithmetic<RequantizeFinish>;

}  // namespace triptych::cpu
