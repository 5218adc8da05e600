// Normalisations of samples line by line. The bits are those of their expansions: the same
// operations in the same order, and sums by the stated tree.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"

#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/reduction.h"
#include "core/ops/axes.h"

namespace triptych::cpu {
namespace {

using scalar::binary;
using enum BinaryKind;

/// Statistics of lines of neighbouring elements.
class LineNormalization {
 public:
  LineNormalization(std::int64_t count, float epsilon) : count_(count), epsilon_(epsilon) {}

  std::int64_t count() const { return count_; }
  float mean(float sum) const { return one_nan(sum / static_cast<float>(count_)); }
  float deviation(float sum) const {
    return scalar::unary<UnaryKind::Sqrt>(binary<Add>(mean(sum), epsilon_), {});
  }
  /// Writes x without its mean, and returns the deviation.
  float center(const float* x, float* y) const {
    const float shift = mean(sum([=](auto i) { return x[i]; }));
    simd([=, count = count_] {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) y[i] = binary<Sub>(x[i], shift);
    });
    return deviation(sum([=](auto i) { return binary<Mul>(y[i], y[i]); }));
  }

 private:
  /// The tree over value(i).
  template <class Value>
  float sum(const Value& value) const {
    TreeFold<SumOf<float>> tree;
    for (std::int64_t first = 0; first < count_; first += kReductionBlock) {
      float result = 0;
      simd([&result, value, first, count = std::min(kReductionBlock, count_ - first)] {
        result = fold_block(
            count, [=](auto i) { return value(first + i); }, SumOf<float>());
      });
      tree.push(result);
    }
    return tree.result();
  }

  std::int64_t count_;  ///< elements of a line
  float epsilon_;
};

class LayerNormalizationKernel : public Kernel {
 public:
  LayerNormalizationKernel(const KernelQuery& query, Device&)
      : line_(line_of(query), query.as<LayerNormalization>().epsilon),
        count_(line_.count()),
        lines_(query.inputs[0].spec.shape.elements() / count_) {}

  static Verdict accepts(const KernelQuery& query) {
    const auto count = line_of(query);
    for (const auto& operand : query.inputs.subspan(1)) {
      if (operand.spec.shape.elements() != count) return Verdict::no("broadcasts scale or bias");
    }
    return accepts_dense(query);
  }

  void run(const KernelArgs& args) override {
    const auto *x = args.in<float>(0), *scale = args.in<float>(1);
    const auto* bias = args.inputs.size() > 2 ? args.in<float>(2) : nullptr;
    auto* y = args.out<float>(0);
    const bool is_short = are_short(lines_, count_);
    parallel_for(lines_, grain_of(kSlowOperation * count_), [&](auto begin, auto end) {
      is_short ? run_short({begin, end}, x, scale, bias, y)
               : run_long({begin, end}, x, scale, bias, y);
    });
  }

 private:
  static std::int64_t line_of(const KernelQuery& query) {
    const auto& shape = query.inputs[0].spec.shape;
    const auto axis = normalize_axis(query.as<LayerNormalization>().axis, shape.rank());
    return shape.elements_between(axis, shape.rank());
  }

  /// Transposed, so that lines lie side by side.
  void run_short(Range lines, const float* x, const float* scale, const float* bias,
                 float* y) const {
    alignas(kAlignment) float columns[kShortBlock];
    const auto at_once = short_lines_at_once(count_);
    for (auto line = lines.begin; line < lines.end; line += at_once) {
      const auto width = std::min(at_once, lines.end - line);
      transpose_matrix({x + line * count_, count_, width, count_}, columns, width, Rounding::None);
      normalize_columns(columns, width, scale, bias);
      transpose_matrix({columns, width, count_, width}, y + line * count_, count_, Rounding::None);
    }
  }

  void normalize_columns(float* columns, std::int64_t width, const float* scale,
                         const float* bias) const {
    float shifts[kColumns], deviations[kColumns];
    auto *shift = shifts, *divisor = deviations;
    const auto count = count_;
    simd([=] {
      fold_columns<SumOf<float>>(
          count, width, [=](auto i, auto w) { return columns[i * width + w]; }, shift);
    });
    for (std::int64_t w = 0; w < width; ++w) shift[w] = line_.mean(shift[w]);
    simd([=] {
      for (std::int64_t i = 0; i < count; ++i) {
#pragma GCC ivdep
        for (std::int64_t w = 0; w < width; ++w)
          columns[i * width + w] = binary<Sub>(columns[i * width + w], shift[w]);
      }
      const auto square = [=](auto i, auto w) {
        return binary<Mul>(columns[i * width + w], columns[i * width + w]);
      };
      fold_columns<SumOf<float>>(count, width, square, divisor);
    });
    for (std::int64_t w = 0; w < width; ++w) divisor[w] = line_.deviation(divisor[w]);
    simd([=] {
      for (std::int64_t i = 0; i < count; ++i) {
        const float factor = scale[i];
#pragma GCC ivdep
        for (std::int64_t w = 0; w < width; ++w) {
          auto& value = columns[i * width + w];
          value = binary<Mul>(binary<Div>(value, divisor[w]), factor);
          if (bias != nullptr) value = binary<Add>(value, bias[i]);
        }
      }
    });
  }

  void run_long(Range lines, const float* x, const float* scale, const float* bias,
                float* y) const {
    const auto count = count_;
    for (auto line = lines.begin; line < lines.end; ++line) {
      auto* to = y + line * count;
      const float divisor = line_.center(x + line * count, to);
      simd([=] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i)
          to[i] = binary<Mul>(binary<Div>(to[i], divisor), scale[i]);
        if (bias == nullptr) return;
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) to[i] = binary<Add>(to[i], bias[i]);
      });
    }
  }

  LineNormalization line_;
  std::int64_t count_, lines_;  ///< elements of a line, and how many there are
};

/// A line is a group of channels of one sample.
template <class Op>
class GroupNormalizationKernel : public Kernel {
 public:
  GroupNormalizationKernel(const KernelQuery& query, Device&)
      : shape_(query.inputs[0].spec.shape),
        channels_(shape_[1] / groups_of(query.as<Op>(), shape_)),
        plane_(shape_.elements_between(2, shape_.rank())),
        line_(channels_ * plane_, query.as<Op>().epsilon) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

  void run(const KernelArgs& args) override {
    const auto *x = args.in<float>(0), *scale = args.in<float>(1), *bias = args.in<float>(2);
    auto* y = args.out<float>(0);
    const auto count = line_.count();
    parallel_for(shape_.elements() / count, grain_of(kSlowOperation * count),
                 [&](auto begin, auto end) {
                   for (auto line = begin; line < end; ++line) {
                     const auto channel = line * channels_ % shape_[1];
                     normalize(x + line * count, scale + channel, bias + channel, y + line * count);
                   }
                 });
  }

 private:
  static std::int64_t groups_of(const GroupNormalization& op, const Shape&) {
    return op.num_groups;
  }
  static std::int64_t groups_of(const InstanceNormalization&, const Shape& x) { return x[1]; }

  void normalize(const float* x, const float* scale, const float* bias, float* y) const {
    const float divisor = line_.center(x, y);
    for (std::int64_t c = 0; c < channels_; ++c, y += plane_) {
      simd([=, count = plane_, factor = scale[c], term = bias[c]] {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i)
          y[i] = binary<Add>(binary<Mul>(binary<Div>(y[i], divisor), factor), term);
      });
    }
  }

  Shape shape_;
  std::int64_t channels_, plane_;  ///< of a group, elements of a channel
  LineNormalization line_;
};

}  // namespace

void add_normalization_kernels(KernelList& list) {
  list.push_back(kernel_entry<LayerNormalizationKernel>(LayerNormalization::kName, "lines"));
  list.push_back(kernel_entry<GroupNormalizationKernel<GroupNormalization>>(
      GroupNormalization::kName, "lines"));
  list.push_back(kernel_entry<GroupNormalizationKernel<InstanceNormalization>>(
      InstanceNormalization::kName, "lines"));
}

}  // namespace triptych::cpu
