// SPDX-License-Identifier: Apache-2.0
#include "core/ops/losses.h"

#include "backends/cuda/kernels/softmax_lines.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// sums[block] = the fold of read(i) over the blocks of the tree of `elements` elements, kEach at a
/// time.
template <class Combine, int kEach, class Read>
__device__ void fold_blocks(std::int64_t elements, Global<typename Combine::Type> sums,
                            const Read& read) {
  for_each_of_team<kEach>(
      global_warp(), all_warps(), reduction_blocks(elements), [&](auto block, bool is_inside) {
        const std::int64_t first = block * kReductionBlock;
        const std::int64_t rest = is_inside ? elements - first : 0;
        const std::int64_t count = rest < kReductionBlock ? rest : kReductionBlock;
        const typename Combine::Type sum = fold_block_by_team<Combine, kEach>(
            count, [&](std::int64_t i) { return read(first + i); });
        if (FoldTeam<kEach>::member() == 0 && is_inside) sums[block] = sum;
      });
}
/// A team for each block of the tree.
LaunchShape block_shape(std::int64_t elements, int each) {
  return one_dimension(reduction_blocks(elements) * (kLanes / each));
}

template <int kEach>
__global__ void binary_cross_entropy_kernel(Global<const float> x, Global<const float> z,
                                            Global<float> sums, std::int64_t elements) {
  fold_blocks<SumOf<float>, kEach>(elements, sums, [&](std::int64_t i) {
    const auto logit = x.load<kEach>(i), target = z.load<kEach>(i);
    Vector<float, kEach> loss;
#pragma unroll
    for (int e = 0; e < kEach; ++e) loss[e] = scalar::binary_cross_entropy(logit[e], target[e]);
    return loss;
  });
}

/// loss = the sum over all blocks / elements, by one block of threads.
__global__ void mean_kernel(Global<const float> sums, Global<float> loss, std::int64_t elements) {
  auto& space = shared<FoldSpace<float>>();
  const float total = fold_results<SumOf<float>>(sums, reduction_blocks(elements), space);
  if (threadIdx.x == 0) loss[0] = one_nan(total / static_cast<float>(elements));
}

class BinaryCrossEntropyKernel : public Kernel {
 public:
  BinaryCrossEntropyKernel(const KernelQuery& query, Device&)
      : elements_(query.inputs[0].spec.shape.elements()), blocks_(reduction_blocks(elements_)) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(blocks_) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* sums = reinterpret_cast<float*>(args.scratch);
    const bool fours = moves_fours({elements_}, args.inputs[0], args.inputs[1]);
    launch(args.stream, "binary_cross_entropy", block_shape(elements_, fours ? 4 : 1),
           fours ? binary_cross_entropy_kernel<4> : binary_cross_entropy_kernel<1>,
           Global(args.in<float>(0), elements_), Global(args.in<float>(1), elements_),
           Global(sums, blocks_), elements_);
    launch(args.stream, "mean", {{1}, {fold_threads(blocks_)}, sizeof(FoldSpace<float>)},
           mean_kernel, Global<const float>(sums, blocks_), Global(args.out<float>(0), 1),
           elements_);
  }

 private:
  std::int64_t elements_, blocks_;
};

/// A thread owns kEach neighbours.
template <int kEach>
__global__ void binary_cross_entropy_gradient_kernel(Global<const float> x, Global<const float> z,
                                                     Global<const float> dloss, Global<float> dx,
                                                     std::int64_t elements) {
  const float scale = dloss[0] / static_cast<float>(elements);
  const std::int64_t first = kEach * global_thread(), step = kEach * all_threads();
  for_each_group<kEach>(first, elements, step, [&](std::int64_t i, auto width) {
    const auto logit = x.load<width()>(i), target = z.load<width()>(i);
    Vector<float, width()> gradient;
#pragma unroll
    for (int e = 0; e < width(); ++e) {
      gradient[e] = scalar::binary_cross_entropy_gradient(logit[e], target[e], scale);
    }
    dx.store<width()>(i, gradient);
  });
}

class BinaryCrossEntropyGradientKernel : public Kernel {
 public:
  BinaryCrossEntropyGradientKernel(const KernelQuery& query, Device&)
      : elements_(query.inputs[0].spec.shape.elements()) {}
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

  void run(const KernelArgs& args) override {
    const bool fours = is_aligned<16>(args.inputs[0], args.inputs[1], args.outputs[0]);
    launch(
        args.stream, "binary_cross_entropy_gradient",
        one_dimension(fours ? (elements_ + 3) / 4 : elements_),
        fours ? binary_cross_entropy_gradient_kernel<4> : binary_cross_entropy_gradient_kernel<1>,
        Global(args.in<float>(0), elements_), Global(args.in<float>(1), elements_),
        Global(args.in<float>(2), 1), Global(args.out<float>(0), elements_), elements_);
  }

 private:
  std::int64_t elements_;
};

/// Labels of one integer type. Those outside [0, classes) and equal to `ignored` do not count.
struct Labels {
  Global<const std::int64_t> wide;
  Global<const std::int32_t> narrow;
  bool is_wide;
  std::int64_t count, classes, ignored;

  /// The label at `i`, or -1 when it does not count.
  __device__ std::int64_t at(std::int64_t i) const {
    std::int64_t label = 0;
    if (is_wide) {
      label = wide[i];
    } else {
      label = narrow[i];
    }
    return label == ignored || label < 0 || label >= classes ? -1 : label;
  }
};

/// The losses of all labels.
template <class Owner>
__global__ void cross_entropy_kernel(Lines lines, Global<const float> x, Labels labels,
                                     Global<float> losses) {
  for_each_line<Owner>(lines, [&](std::int64_t line) {
    const std::int64_t start = lines.start(line), label = labels.at(line);
    const auto statistics = LineStatistics::of<Owner>(lines, x, start);
    if (Owner::member() != 0) return;
    if (label < 0) {
      losses[line] = 0.0F;
    } else {
      const float here = x[start + label * lines.inner];
      losses[line] = scalar::cross_entropy(here, statistics.largest, statistics.sum);
    }
  });
}

/// Block sums of the losses.
template <int kEach>
__global__ void loss_sums_kernel(Global<const float> losses, Global<float> sums,
                                 std::int64_t count) {
  fold_blocks<SumOf<float>, kEach>(count, sums,
                                   [&](std::int64_t i) { return losses.load<kEach>(i); });
}

/// Per block of labels how many count.
__global__ void label_counts_kernel(Labels labels, Global<std::int64_t> counts) {
  fold_blocks<SumOf<std::int64_t>, 1>(labels.count, counts, [&](std::int64_t i) {
    return Vector<std::int64_t, 1>{{labels.at(i) >= 0 ? 1 : 0}};
  });
}

/// The number of labels that count, at least 1, by one block of threads.
__global__ void count_kernel(Global<const std::int64_t> counts, std::int64_t blocks,
                             Global<float> count) {
  auto& space = shared<FoldSpace<std::int64_t>>();
  const std::int64_t total = fold_results<SumOf<std::int64_t>>(counts, blocks, space);
  if (threadIdx.x == 0) count[0] = static_cast<float>(total > 1 ? total : 1);
}

/// loss = the sum over all blocks, divided by `count` for a mean, by one block of threads.
__global__ void total_loss_kernel(Global<const float> sums, std::int64_t blocks,
                                  Global<const float> count, bool mean, Global<float> loss) {
  auto& space = shared<FoldSpace<float>>();
  const float total = fold_results<SumOf<float>>(sums, blocks, space);
  if (threadIdx.x == 0) loss[0] = one_nan(mean ? total / count[0] : total);
}

/// Common part of the loss and its gradient: lines of classes, the labels, and their number.
template <class OpType>
class CrossEntropyBase : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }

 protected:
  explicit CrossEntropyBase(const KernelQuery& query)
      : lines_{AxisLines::along(query.inputs[0].spec.shape, 1)},
        blocks_(reduction_blocks(lines_.lines())),
        wide_(query.inputs[1].spec.dtype == DType::I64),
        ignored_(query.as<OpType>().ignore_index),
        mean_(query.as<OpType>().reduction == "mean"),
        each_(query.as<OpType>().reduction == "none") {}

  Labels labels(const KernelArgs& args) const {
    const auto count = lines_.lines();
    return {.wide = {args.in<std::int64_t>(1), wide_ ? count : 0},
            .narrow = {args.in<std::int32_t>(1), wide_ ? 0 : count},
            .is_wide = wide_,
            .count = count,
            .classes = lines_.count,
            .ignored = ignored_};
  }
  Global<const float> scores(const KernelArgs& args) const {
    return {args.in<float>(0), lines_.elements()};
  }

  /// The number of labels that count, in the first count_bytes() of the scratch.
  Global<const float> count_labels(const KernelArgs& args) const {
    auto* counts = reinterpret_cast<std::int64_t*>(args.scratch);
    auto* count = reinterpret_cast<float*>(counts + blocks_);
    launch(args.stream, "label_counts", block_shape(lines_.lines(), 1), label_counts_kernel,
           labels(args), Global(counts, blocks_));
    launch(args.stream, "label_count",
           {{1}, {fold_threads(blocks_)}, sizeof(FoldSpace<std::int64_t>)}, count_kernel,
           Global<const std::int64_t>(counts, blocks_), blocks_, Global(count, 1));
    return {count, 1};
  }
  std::size_t count_bytes() const {
    return mean_ ? static_cast<std::size_t>(blocks_ + 1) * sizeof(std::int64_t) : 0;
  }

  Lines lines_;
  std::int64_t blocks_;  ///< of the tree over the labels
  bool wide_;
  std::int64_t ignored_;
  bool mean_, each_;
};

/// The losses of all labels are one row of the tree.
class CrossEntropyKernel : public CrossEntropyBase<SoftmaxCrossEntropyLoss> {
 public:
  CrossEntropyKernel(const KernelQuery& query, Device&) : CrossEntropyBase(query) {}

  std::size_t scratch_bytes() const override {
    const auto losses = static_cast<std::size_t>(lines_.lines() + blocks_);
    return each_ ? 0 : count_bytes() + losses * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    const auto count = lines_.lines();
    auto* losses =
        each_ ? args.out<float>(0) : reinterpret_cast<float*>(args.scratch + count_bytes());
    with_owner(lines_, [&]<class Owner>(Owner) {
      launch(args.stream, "cross_entropy", line_shape<Owner>(lines_), cross_entropy_kernel<Owner>,
             lines_, scores(args), labels(args), Global(losses, count));
    });
    if (each_) return;
    auto* sums = losses + count;
    const bool fours = moves_fours({count}, losses);
    launch(args.stream, "loss_sums", block_shape(count, fours ? 4 : 1),
           fours ? loss_sums_kernel<4> : loss_sums_kernel<1>, Global<const float>(losses, count),
           Global(sums, blocks_), count);
    const auto counted = mean_ ? count_labels(args) : Global<const float>();
    launch(args.stream, "total_loss", {{1}, {fold_threads(blocks_)}, sizeof(FoldSpace<float>)},
           total_loss_kernel, Global<const float>(sums, blocks_), blocks_, counted, mean_,
           Global(args.out<float>(0), 1));
  }
};

/// How the gradient of a line's loss is scaled.
struct LossScale {
  Global<const float> dloss, count;
  bool each, mean;

  __device__ float at(std::int64_t line) const {
    const float gradient = dloss[each ? line : 0];
    float divisor = 1;
    if (mean) divisor = count[0];
    return gradient / divisor;
  }
};

template <class Owner>
__global__ void cross_entropy_gradient_kernel(Lines lines, Global<const float> x, Labels labels,
                                              LossScale scales, Global<float> dx) {
  for_each_line<Owner>(lines, [&](std::int64_t line) {
    const std::int64_t start = lines.start(line), label = labels.at(line);
    const auto statistics = LineStatistics::of<Owner>(lines, x, start);
    float scale = 0;
    if (label >= 0) scale = scales.at(line);
    for_each_element<Owner>(lines, [&](std::int64_t i) {
      const std::int64_t at = start + i * lines.inner;
      const float value = x[at];
      const float p = scalar::probability(value, statistics.largest, statistics.sum);
      dx[at] = scalar::cross_entropy_gradient(p, i == label, scale);
    });
  });
}

class CrossEntropyGradientKernel : public CrossEntropyBase<SoftmaxCrossEntropyLossGradient> {
 public:
  CrossEntropyGradientKernel(const KernelQuery& query, Device&) : CrossEntropyBase(query) {}
  std::size_t scratch_bytes() const override { return count_bytes(); }

  void run(const KernelArgs& args) override {
    const LossScale scales = {.dloss = {args.in<float>(2), each_ ? lines_.lines() : 1},
                              .count = mean_ ? count_labels(args) : Global<const float>(),
                              .each = each_,
                              .mean = mean_};
    with_owner(lines_, [&]<class Owner>(Owner) {
      launch(args.stream, "cross_entropy_gradient", line_shape<Owner>(lines_),
             cross_entropy_gradient_kernel<Owner>, lines_, scores(args), labels(args), scales,
             Global(args.out<float>(0), lines_.elements()));
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

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
