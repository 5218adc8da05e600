// Maximum and sum of exponentials along lines, for Softmax, LogSoftmax and the cross entropy over
// classes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/reduction.h"
#include "core/base/checked_math.h"
#include "core/base/exact_math.h"
#include "core/ops/axes.h"

namespace triptych::cpu {

/// Lines and how they are walked.
struct Lines : AxisLines {
  /// Lines side by side that are handled at once.
  std::int64_t width() const {
    return count <= kReductionBlock ? std::min(inner, kColumns) : std::int64_t{1};
  }
  std::int64_t chunks() const { return ceil_div(inner, width()); }

  /// Calls visit(index of the first line, index of its first element, lines at once), in parallel.
  template <class Visitor>
  void for_each_chunk(const Visitor& visit) const {
    if (inner == 0) return;
    const auto grain = grain_of(kSlowOperation * count * width());
    parallel_for(outer * chunks(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto item = begin; item < end; ++item) {
        const auto o = item / chunks(), column = item % chunks() * width();
        visit(o * inner + column, o * count * inner + column, std::min(width(), inner - column));
      }
    });
  }
};

/// Per line the largest element and the tree sum of exp(x - largest).
struct LineStatistics {
  float largest[kColumns];
  float sum[kColumns];

  LineStatistics(const Lines& lines, const float* x, std::int64_t width) {
    if (width > 1) {
      fold_side_by_side(lines, x, width);
    } else {
      fold_one(lines, x);
    }
  }

 private:
  void fold_side_by_side(const Lines& lines, const float* x, std::int64_t width) {
    const auto count = lines.count, inner = lines.inner;
    auto *maxima = largest, *sums = sum;
    simd([=] {
      fold_columns<MaxOf<float>>(
          count, width, [=](auto i, auto w) { return x[i * inner + w]; }, maxima);
      const auto exponential = [=](auto i, auto w) [[gnu::always_inline]] {
        return exact::exp(x[i * inner + w] - maxima[w]);
      };
      fold_columns<SumOf<float>>(count, width, exponential, sums);
    });
  }

  void fold_one(const Lines& lines, const float* x) {
    const auto inner = lines.inner;
    float maximum = -exact::kInfinity;
    TreeFold<SumOf<float>> tree;
    for (std::int64_t first = 0; first < lines.count; first += kReductionBlock) {
      const auto* block = x + first * inner;
      const auto count = std::min(kReductionBlock, lines.count - first);
      simd([&maximum, block, count, inner] {
        const auto at = [=](auto i) { return block[i * inner]; };
        const float here = inner == 1 ? fold_block(
                                            count, [=](auto i) { return block[i]; }, MaxOf<float>())
                                      : fold_block(count, at, MaxOf<float>());
        maximum = here > maximum ? here : maximum;
      });
    }
    for (std::int64_t first = 0; first < lines.count; first += kReductionBlock) {
      const auto* block = x + first * inner;
      const auto count = std::min(kReductionBlock, lines.count - first);
      float result = 0;
      simd([&result, block, count, inner, maximum] {
        const auto near = [=](auto i) { return exact::exp(block[i] - maximum); };
        const auto far = [=](auto i) { return exact::exp(block[i * inner] - maximum); };
        result = inner == 1 ? fold_computed_block(count, near, SumOf<float>())
                            : fold_computed_block(count, far, SumOf<float>());
      });
      tree.push(result);
    }
    largest[0] = maximum;
    sum[0] = tree.result();
  }
};

}  // namespace triptych::cpu
