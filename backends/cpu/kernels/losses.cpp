// SPDX-License-Identifier: Apache-2.0
#include "core/ops/losses.h"

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/softmax_lines.h"
#include "core/ops/scalar_math.h"

namespace triptych::cpu {
namespace {

/// Calls fold(first, count, block) for every block of `elements`, in parallel.
template <class Fold>
void for_each_block(std::int64_t elements, const Fold& fold) {
  parallel_for(reduction_blocks(elements), grain_of(kReductionBlock),
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto block = begin; block < end; ++block) {
                   const auto first = block * kReductionBlock;
                   fold(first, std::min(kReductionBlock, elements - first), block);
                 }
               });
}

class BinaryCrossEntropyKernel : public Kernel {
 public:
  BinaryCrossEntropyKernel(const KernelQuery& query, Device&)
      : elements_(query.inputs[0].spec.shape.elements()) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(reduction_blocks(elements_)) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    const auto *x = args.in<float>(0), *z = args.in<float>(1);
    auto* sums = reinterpret_cast<float*>(args.scratch);
    for_each_block(elements_, [=](std::int64_t first, std::int64_t count, std::int64_t block) {
      const auto *xs = x + first, *zs = z + first;
      auto* sum = sums + block;
      simd([=] {
        const auto loss = [=](auto i) { return scalar::binary_cross_entropy(xs[i], zs[i]); };
        *sum = fold_computed_block(count, loss, SumOf<float>());
      });
    });
    const float total = fold_tree(sums, reduction_blocks(elements_), SumOf<float>());
    *args.out<float>(0) = one_nan(total / static_cast<float>(elements_));
  }

 private:
  std::int64_t elements_;
};

class BinaryCrossEntropyGradientKernel : public Kernel {
 public:
  BinaryCrossEntropyGradientKernel(const KernelQuery& query, Device&)
      : elements_(query.inputs[0].spec.shape.elements()) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

  void run(const KernelArgs& args) override {
    const auto *x = args.in<float>(0), *z = args.in<float>(1);
    auto* dx = args.out<float>(0);
    const float scale = *args.in<float>(2) / static_cast<float>(elements_);
    parallel_for(elements_, grain_of(kSlowOperation), [=](std::int64_t begin, std::int64_t end) {
      simd([=] {
#pragma GCC ivdep
        for (auto i = begin; i < end; ++i) {
          dx[i] = scalar::binary_cross_entropy_gradient(x[i], z[i], scale);
        }
      });
    });
  }

 private:
  std::int64_t elements_;
};

/// Labels of one integer type. Those outside [0, classes) and equal to `ignored` do not count.
struct Labels {
  const std::byte* data;
  bool wide;  ///< i64, else i32
  std::int64_t classes, ignored;

  /// The label at `i`, or -1 when it does not count.
  std::int64_t at(std::int64_t i) const {
    const auto label = wide ? reinterpret_cast<const std::int64_t*>(data)[i]
                            : reinterpret_cast<const std::int32_t*>(data)[i];
    return label == ignored || label < 0 || label >= classes ? -1 : label;
  }
};

/// Common part of the loss and its gradient: lines of classes, the labels, and their number.
template <class OpType>
class CrossEntropyBase : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

 protected:
  explicit CrossEntropyBase(const KernelQuery& query)
      : lines_{AxisLines::along(query.inputs[0].spec.shape, 1)},
        labels_(lines_.outer * lines_.inner),
        wide_(query.inputs[1].spec.dtype == DType::I64),
        ignored_(query.as<OpType>().ignore_index),
        mean_(query.as<OpType>().reduction == "mean"),
        each_(query.as<OpType>().reduction == "none") {}

  Labels labels(const KernelArgs& args) const {
    return {args.inputs[1], wide_, lines_.count, ignored_};
  }

  /// Number of labels that count, at least 1, with one cell of `scratch` per block of labels.
  float count_labels(const Labels& labels, std::int64_t* scratch) const {
    for_each_block(labels_, [&](std::int64_t first, std::int64_t count, std::int64_t block) {
      std::int64_t counted = 0;
      for (std::int64_t i = first; i < first + count; ++i) counted += labels.at(i) >= 0 ? 1 : 0;
      scratch[block] = counted;
    });
    std::int64_t total = 0;
    for (std::int64_t block = 0; block < reduction_blocks(labels_); ++block) {
      total += scratch[block];
    }
    return static_cast<float>(std::max<std::int64_t>(total, 1));
  }
  std::size_t count_bytes() const {
    return static_cast<std::size_t>(reduction_blocks(labels_)) * sizeof(std::int64_t);
  }

  Lines lines_;
  std::int64_t labels_;
  bool wide_;
  std::int64_t ignored_;
  bool mean_, each_;
};

/// Per label (largest - x[label]) + log(sum), 0 where the label does not count. All of them are one
/// row of the tree.
class CrossEntropyKernel : public CrossEntropyBase<SoftmaxCrossEntropyLoss> {
 public:
  CrossEntropyKernel(const KernelQuery& query, Device&) : CrossEntropyBase(query) {}

  std::size_t scratch_bytes() const override {
    const auto losses = static_cast<std::size_t>(labels_ + reduction_blocks(labels_));
    return count_bytes() + (each_ ? 0 : losses * sizeof(float));
  }

  void run(const KernelArgs& args) override {
    const auto* x = args.in<float>(0);
    const auto given = labels(args);
    auto* counts = reinterpret_cast<std::int64_t*>(args.scratch);
    auto* losses =
        each_ ? args.out<float>(0) : reinterpret_cast<float*>(args.scratch + count_bytes());
    lines_.for_each_chunk([&](std::int64_t line, std::int64_t start, std::int64_t width) {
      const LineStatistics statistics(lines_, x + start, width);
      for (std::int64_t w = 0; w < width; ++w) {
        const auto label = given.at(line + w);
        losses[line + w] = label < 0
                               ? 0.0F
                               : scalar::cross_entropy(x[start + label * lines_.inner + w],
                                                       statistics.largest[w], statistics.sum[w]);
      }
    });
    if (each_) return;
    const float sum = sum_of(losses, losses + labels_);
    *args.out<float>(0) = one_nan(mean_ ? sum / count_labels(given, counts) : sum);
  }

 private:
  float sum_of(const float* losses, float* sums) const {
    for_each_block(labels_, [=](std::int64_t first, std::int64_t count, std::int64_t block) {
      const auto* here = losses + first;
      sums[block] = fold_block(
          count, [=](auto i) { return here[i]; }, SumOf<float>());
    });
    return fold_tree(sums, reduction_blocks(labels_), SumOf<float>());
  }
};

/// dx = dloss / count (exp(x - largest) / sum - onehot).
class CrossEntropyGradientKernel : public CrossEntropyBase<SoftmaxCrossEntropyLossGradient> {
 public:
  CrossEntropyGradientKernel(const KernelQuery& query, Device&) : CrossEntropyBase(query) {}
  std::size_t scratch_bytes() const override { return count_bytes(); }

  void run(const KernelArgs& args) override {
    const auto *x = args.in<float>(0), *dloss = args.in<float>(2);
    auto* dx = args.out<float>(0);
    const auto given = labels(args);
    const float count =
        mean_ ? count_labels(given, reinterpret_cast<std::int64_t*>(args.scratch)) : 1.0F;
    lines_.for_each_chunk([&](std::int64_t line, std::int64_t start, std::int64_t width) {
      const LineStatistics statistics(lines_, x + start, width);
      float scales[kColumns];
      for (std::int64_t w = 0; w < width; ++w) {
        const bool counts = given.at(line + w) >= 0;
        scales[w] = counts ? dloss[each_ ? line + w : 0] / count : 0.0F;
      }
      write(x + start, dx + start, width, statistics, scales);
      for (std::int64_t w = 0; w < width; ++w) {
        const auto label = given.at(line + w);
        if (label < 0) continue;
        const auto at = start + label * lines_.inner + w;
        const float p = scalar::probability(x[at], statistics.largest[w], statistics.sum[w]);
        dx[at] = scalar::cross_entropy_gradient(p, true, scales[w]);
      }
    });
  }

 private:
  void write(const float* x, float* dx, std::int64_t width, const LineStatistics& statistics,
             const float* scales) const {
    const auto *largest = statistics.largest, *sum = statistics.sum;
    const auto count = lines_.count, inner = lines_.inner;
    simd([=] {
      for (std::int64_t c = 0; c < count; ++c) {
#pragma GCC ivdep
        for (std::int64_t w = 0; w < width; ++w) {
          const float p = scalar::probability(x[c * inner + w], largest[w], sum[w]);
          dx[c * inner + w] = scalar::cross_entropy_gradient(p, false, scales[w]);
        }
      }
    });
  }
};

}  // namespace

void add_losses_kernels(KernelList& list) {
  list.push_back(
      kernel_entry<BinaryCrossEntropyKernel>("BinaryCrossEntropyWithLogits", "elementwise_tree"));
  list.push_back(kernel_entry<BinaryCrossEntropyGradientKernel>(
      "BinaryCrossEntropyWithLogitsGradient", "elementwise"));
  list.push_back(kernel_entry<CrossEntropyKernel>("SoftmaxCrossEntropyLoss", "lines"));
  list.push_back(
      kernel_entry<CrossEntropyGradientKernel>("SoftmaxCrossEntropyLossGradient", "lines"));
}

}  // namespace triptych::cpu
