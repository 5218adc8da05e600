// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/channel_pieces.cuh"
#include "backends/cuda/kernels/operand_span.h"
#include "backends/cuda/kernels/reduction.cuh"
#include "core/ops/axes.h"
#include "core/runtime/kernel_families.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Row-major positions over some axes of a tensor.
using Positions = ElementOffsets<1>;

__device__ std::int64_t offset_of(const Positions& positions, std::int64_t i) {
  std::int64_t at[1];
  positions.at(i, at);
  return at[0];
}

/// x as kept x reduced x inner. Each of the first two may be several separate axes, and `inner` is
/// the size of the last axes when they are preserved (otherwise 1). Outputs have the shape kept x
/// inner. A sequence is `rows` rows of `row` elements, `row_stride` apart.
struct ReduceLayout {
  Positions kept, rows;
  std::int64_t row = 1, row_stride = 1, inner = 1;
  std::int64_t count = 1, blocks = 1;  ///< elements and blocks of the tree per output
  std::int64_t outputs = 1;
  std::int64_t x_span = 0, x_outer = 0;  ///< elements of x, and between its images

  static ReduceLayout of(const Reduce& op, const Operand& x) {
    const auto flags = ReduceGeometry::of(op, x.spec.shape).reduced;
    auto kept_axes = walk(x, flags, false), reduced_axes = walk(x, flags, true);
    ReduceLayout layout = {Positions(kept_axes), Positions(reduced_axes)};
    layout.x_span = span_of(x);
    layout.x_outer = x.outer_stride;
    layout.outputs = kept_axes.elements;
    layout.count = reduced_axes.elements;
    layout.blocks = std::max<std::int64_t>(reduction_blocks(layout.count), 1);
    if (layout.kept.axes > 0 && kept_axes.strides.back()[0] == 1) {
      layout.inner = kept_axes.sizes.back();
      --layout.kept.axes;
    }
    if (layout.rows.axes > 0) {
      layout.row = reduced_axes.sizes.back();
      layout.row_stride = reduced_axes.strides.back()[0];
      --layout.rows.axes;
    }
    return layout;
  }

  /// The sums over all positions of images that are stored channels last.
  static ReduceLayout of_channels(const StoredChannels& x) {
    const std::int64_t channels = x.images.channels, pitch = x.format.pitch;
    const BroadcastWalk<1> none(Shape{}, {Dims{}});
    ReduceLayout layout = {Positions(none), Positions(none)};
    layout.count = layout.row = x.images.images * x.images.positions;
    layout.row_stride = pitch;
    layout.inner = layout.outputs = channels;
    layout.blocks = std::max<std::int64_t>(reduction_blocks(layout.count), 1);
    layout.x_span = x.span();
    return layout;
  }

  /// Calls visit(offset) for elements first, first + step, ... below `end` of a sequence.
  template <class Visit>
  __device__ void for_each(std::int64_t first, std::int64_t end, std::int64_t step,
                           const Visit& visit) const {
    while (first < end) {
      const std::int64_t number = first / row, begin = number * row;
      const std::int64_t here = offset_of(rows, number) - begin * row_stride;
      const std::int64_t row_end = begin + row < end ? begin + row : end;
      for (; first < row_end; first += step) visit(here + first * row_stride);
    }
  }

 private:
  static BroadcastWalk<1> walk(const Operand& x, const std::vector<bool>& flags, bool reduced) {
    const auto& shape = x.spec.shape;
    const auto all = operand_strides(x, shape);
    Dims sizes, strides;
    for (std::size_t axis = 0; axis < flags.size(); ++axis) {
      if (flags[axis] != reduced) continue;
      sizes.push_back(shape.dims()[axis]);
      strides.push_back(all[axis]);
    }
    return BroadcastWalk<1>(Shape(sizes), {strides});
  }
};

/// MeanDivisor of a total, for the mean of floats.
struct MeanDivisor {
  float value = 1;
  bool divides = false;

  template <class T>
  __device__ T operator()(T total) const {
    if constexpr (std::is_same_v<T, float>) return one_nan(divides ? total / value : total);
    return total;
  }
};

/// results[output][block] of the tree. A team owns a block of one output. Its threads read
/// neighbours, kEach at a time: rows are then contiguous and whole.
template <class Combine, int kEach>
__global__ void fold_rows_kernel(Global<const typename Combine::Type> x,
                                 Global<typename Combine::Type> results, ReduceLayout layout,
                                 MeanDivisor divisor) {
  using T = typename Combine::Type;
  using Team = FoldTeam<kEach>;
  const std::int64_t blocks = layout.blocks, items = layout.outputs * blocks;
  for_each_of_team<kEach>(global_warp(), all_warps(), items, [&](auto item, bool is_inside) {
    const std::int64_t output = item / blocks, first = item % blocks * kReductionBlock;
    const std::int64_t base = offset_of(layout.kept, output / layout.inner) + output % layout.inner;
    std::int64_t end =
        first + kReductionBlock < layout.count ? first + kReductionBlock : layout.count;
    if (!is_inside) end = first;
    Vector<T, kEach> total;
#pragma unroll
    for (int e = 0; e < kEach; ++e) total[e] = Combine::kStart;
    layout.for_each(first + kEach * Team::member(), end, kLanes, [&](std::int64_t offset) {
      const auto values = x.template load<kEach>(base + offset);
#pragma unroll
      for (int e = 0; e < kEach; ++e) total[e] = Combine()(total[e], values[e]);
    });
    const T folded = fold_lanes<Combine>(total);
    if (Team::member() == 0 && is_inside) results[item] = divisor(folded);
  });
}

inline constexpr int kColumns = 32;

template <class T>
struct ColumnSpace {
  Shared<T, kLanes, kColumns> lanes;
};

/// The same where columns lie side by side. A block of threads owns a block of the tree for each of
/// 32 columns: threadIdx.x is the column, threadIdx.y the lane of the tree, as many as are used.
template <class Combine, class X>
__global__ void fold_columns_kernel(Global<const X> x, Global<typename Combine::Type> results,
                                    ReduceLayout layout, MeanDivisor divisor) {
  using T = typename Combine::Type;
  auto& space = shared<ColumnSpace<T>>();
  const int lane = static_cast<int>(threadIdx.y), lanes = static_cast<int>(blockDim.y);
  const std::int64_t chunks = (layout.inner + kColumns - 1) / kColumns;
  const std::int64_t items = layout.outputs / layout.inner * layout.blocks * chunks;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t column = item % chunks * kColumns + threadIdx.x, slot = item / chunks;
    const std::int64_t kept = slot / layout.blocks, block = slot % layout.blocks;
    const std::int64_t first = block * kReductionBlock;
    const std::int64_t end =
        first + kReductionBlock < layout.count ? first + kReductionBlock : layout.count;
    const std::int64_t base = offset_of(layout.kept, kept) + column;
    T total = Combine::kStart;
    if (column < layout.inner) {
      layout.for_each(first + lane, end, lanes, [&](std::int64_t offset) {
        const X value = x[base + offset];
        total = Combine()(total, static_cast<T>(value));
      });
    }
    space.lanes(lane, threadIdx.x) = total;
    __syncthreads();
    for (int half = lanes / 2; half > 0; half /= 2) {
      if (lane < half) {
        const T mine = space.lanes(lane, threadIdx.x);
        const T partner = space.lanes(lane + half, threadIdx.x);
        space.lanes(lane, threadIdx.x) = Combine()(mine, partner);
      }
      __syncthreads();
    }
    if (lane == 0 && column < layout.inner) {
      const T folded = space.lanes(0, threadIdx.x);
      results[(kept * layout.inner + column) * layout.blocks + block] = divisor(folded);
    }
    __syncthreads();
  }
}

/// Terms of PieceFolds: the elements.
struct PieceSums {
  static constexpr int kSums = 1;
  LastImages<const BFloat16> x;
  Global<float> results[kSums];

  __device__ void begin(std::int64_t) const {}
  __device__ ChannelPiece read(std::int64_t image, std::int64_t position,
                               std::int64_t channel) const {
    return x.piece(image, position, channel);
  }
  __device__ void add(const ChannelPiece& piece, int c, float (&sums)[kSums]) const {
    sums[0] += static_cast<float>(piece[c]);
  }
};

/// The same of images that are stored channels last.
__global__ void fold_pieces_kernel(PieceFolds folds, PieceSums terms) { folds.fold(terms); }

/// y[output] = the balanced tree over results[output]. A block of threads owns an output.
template <class Combine>
__global__ void fold_results_kernel(Global<const typename Combine::Type> results,
                                    Global<typename Combine::Type> y, ReduceLayout layout,
                                    MeanDivisor divisor) {
  auto& space = shared<FoldSpace<typename Combine::Type>>();
  for (std::int64_t output = blockIdx.x; output < layout.outputs; output += gridDim.x) {
    const auto total =
        fold_results<Combine>(results.from(output * layout.blocks), layout.blocks, space);
    if (threadIdx.x == 0) y[output] = divisor(total);
  }
}

Verdict accepts_layout(const KernelQuery& query) {
  if (!query.outputs[0].is_dense()) return Verdict::no("needs a dense output");
  if (query.inputs[0].spec.shape.rank() <= Positions::kMostAxes) return Verdict::yes();
  return Verdict::no("takes tensors of up to 8 dimensions");
}

template <class Combine>
class ReduceKernel : public Kernel {
  using T = typename Combine::Type;

 public:
  explicit ReduceKernel(const KernelQuery& query)
      : stored_x_(stored_channels(query.inputs[0])),
        layout_(stored_x_ ? ReduceLayout::of_channels(*stored_x_)
                          : ReduceLayout::of(query.as<Reduce>(), query.inputs[0])),
        divisor_{static_cast<float>(layout_.count), query.as<Reduce>().kind == ReduceKind::Mean} {}

  std::size_t scratch_bytes() const override {
    return layout_.blocks == 1 ? 0 : static_cast<std::size_t>(results()) * sizeof(T);
  }

  void run(const KernelArgs& args) override {
    if (layout_.outputs == 0) return;
    if (layout_.blocks == 1) return fold(args, args.out<T>(0), divisor_);
    auto* partial = reinterpret_cast<T*>(args.scratch);
    fold(args, partial, MeanDivisor{});
    launch(args.stream, "reduce_results",
           {{limited(layout_.outputs)}, {fold_threads(layout_.blocks)}, sizeof(FoldSpace<T>)},
           fold_results_kernel<Combine>, Global<const T>(partial, results()),
           Global(args.out<T>(0), layout_.outputs), layout_, divisor_);
  }

 private:
  std::int64_t results() const { return layout_.outputs * layout_.blocks; }
  static unsigned limited(std::int64_t blocks) {
    return static_cast<unsigned>(std::min(blocks, std::int64_t{1} << 20));
  }

  /// Blocks of the tree: by columns where enough adjacent ones fill a memory transaction.
  void fold(const KernelArgs& args, T* target, const MeanDivisor& divisor) const {
    const Global y(target, results());
    if constexpr (std::is_same_v<Combine, SumOf<float>>) {
      if (stored_x_ && layout_.blocks > 1) return fold_pieces(args, y);
      if (stored_x_) return fold_columns(args, stored_x_->over(args.inputs[0]), y, divisor);
    }
    const Global x(args.in<T>(0), layout_.x_span);
    layout_.inner < 8 ? fold_rows(args, x, y, divisor) : fold_columns(args, x, y, divisor);
  }

  /// The positions of all images as those of one.
  void fold_pieces(const KernelArgs& args, const Global<float>& y) const {
    const std::int64_t positions = layout_.count;
    const PieceFolds folds(ChannelPlanes(Shape{1, layout_.outputs, positions}));
    const LastImages<const BFloat16> x = {stored_x_->over(args.inputs[0]), positions,
                                          stored_x_->format.pitch};
    launch(args.stream, "reduce_pieces", folds.shape(sizeof(PieceFolds::Space<PieceSums::kSums>)),
           fold_pieces_kernel, folds, PieceSums{x, {y}});
  }

  template <class X>
  void fold_columns(const KernelArgs& args, const Global<const X>& x, const Global<T>& y,
                    const MeanDivisor& divisor) const {
    unsigned lanes = 1;
    while (lanes < kLanes && lanes < layout_.count) lanes *= 2;
    const auto chunks = (layout_.inner + kColumns - 1) / kColumns;
    launch(
        args.stream, "reduce_columns",
        {{limited(results() / layout_.inner * chunks)}, {kColumns, lanes}, sizeof(ColumnSpace<T>)},
        fold_columns_kernel<Combine, X>, x, y, layout_, divisor);
  }

  void fold_rows(const KernelArgs& args, const Global<const T>& x, const Global<T>& y,
                 const MeanDivisor& divisor) const {
    if constexpr (std::is_same_v<T, float>) {
      // All rows of an image begin at multiples of their length.
      if (layout_.inner == 1 && layout_.row_stride == 1 &&
          moves_fours({layout_.row, layout_.x_outer}, args.inputs[0])) {
        launch(args.stream, "reduce_rows", one_dimension(results() * (kLanes / 4)),
               fold_rows_kernel<Combine, 4>, x, y, layout_, divisor);
        return;
      }
    }
    launch(args.stream, "reduce_rows", one_dimension(results() * kLanes),
           fold_rows_kernel<Combine, 1>, x, y, layout_, divisor);
  }

  std::optional<StoredChannels> stored_x_;
  ReduceLayout layout_;
  MeanDivisor divisor_;
};

/// The sums or means of channels, which gradients of biases are.
ChannelsLastOperands channels_last_sums(const KernelQuery& query) {
  const auto& op = query.as<Reduce>();
  const auto& x = query.inputs[0].spec.shape;
  if (!may_be_rounded(query, query.inputs[0])) return {};
  return {.inputs = {ReduceGeometry::of(op, x).reduced == std::vector{true, false, true, true}}};
}

struct ArgMaxLayout : AxisLines {
  bool last = false;  ///< of equal elements
};

/// The best element of some. None at first.
template <class C>
struct Best {
  C value{};
  std::int64_t index = -1;

  __device__ void meet(C other, std::int64_t at, bool last) {
    if (at < 0) return;
    const bool wins_tie = last ? at > index : at < index;
    if (index < 0 || exceeds(other, value) || (ties(other, value) && wins_tie)) {
      value = other;
      index = at;
    }
  }
};

/// A warp or a thread owns a line. Compares values stored in fewer bits as floats.
template <class T, int kThreads>
__global__ void arg_max_kernel(Global<const T> x, Global<std::int64_t> y, ArgMaxLayout layout) {
  using C = scalar::ComputeType<T>;
  const std::int64_t lines = layout.outer * layout.inner;
  const int member = static_cast<int>(threadIdx.x) % kThreads;
  for (auto line = global_thread() / kThreads; line < lines; line += all_threads() / kThreads) {
    const std::int64_t base =
        line / layout.inner * layout.count * layout.inner + line % layout.inner;
    Best<C> best;
    for (std::int64_t i = member; i < layout.count; i += kThreads) {
      const T value = x[base + i * layout.inner];
      best.meet(static_cast<C>(value), i, layout.last);
    }
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      const C value = static_cast<C>(__shfl_down_sync(kWholeWarp, best.value, half));
      const std::int64_t index = __shfl_down_sync(kWholeWarp, best.index, half);
      best.meet(value, index, layout.last);
    }
    if (member == 0) y[line] = best.index;
  }
}

template <class T>
class ArgMaxKernel : public Kernel {
 public:
  explicit ArgMaxKernel(const KernelQuery& query) {
    const auto& op = query.as<ArgMax>();
    const auto& x = query.inputs[0].spec.shape;
    layout_ = {AxisLines::along(x, normalize_axis(op.axis, x.rank())), op.select_last_index};
  }

  void run(const KernelArgs& args) override {
    const auto lines = layout_.outer * layout_.inner;
    if (lines == 0) return;
    // Neighbouring threads read neighbours: along the line, or one of each line.
    layout_.inner == 1 ? run_by<kLanes>(args, lines) : run_by<1>(args, lines);
  }

 private:
  template <int kThreads>
  void run_by(const KernelArgs& args, std::int64_t lines) const {
    launch(args.stream, "arg_max", one_dimension(lines * kThreads), arg_max_kernel<T, kThreads>,
           Global(args.in<T>(0), lines * layout_.count), Global(args.out<std::int64_t>(0), lines),
           layout_);
  }

  ArgMaxLayout layout_;
};

}  // namespace

void add_reduce_kernels(KernelList& list) {
  add_reductions<ReduceKernel, ArgMaxKernel>(list, &accepts_layout, &accepts_dense,
                                             &channels_last_sums);
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
