// Max pooling in training: the index of each maximum is stored, and its gradient reads that instead
// of x: a byte per output, where x has the elements of a whole window.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/pool_channels_last.cuh"
#include "backends/cuda/kernels/pool_windows.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// A thread owns an element of y and its index.
template <bool kTwoByTwo>
__global__ void max_pool_index_kernel(Steps<kTwoByTwo> steps, PlaneArray<const float> x,
                                      PlaneArray<float> y, PlaneArray<TapIndex> index,
                                      std::int64_t planes) {
  for (auto i = global_thread(); i < planes * y.size; i += all_threads()) {
    const std::int64_t plane = i / y.size, output = i % y.size;
    const auto source = x.at(plane);
    const Maximum best = steps.largest(source, output);
    const float element = source[best.input];
    y.at(plane)[output] = element;
    index.at(plane)[output] = static_cast<TapIndex>(best.tap);
  }
}

/// Another gradient of x, which is added to dx, or none.
struct OtherPlanes {
  PlaneArray<const float> data;
  bool exists = false;
};

/// A thread owns an element of dx: it looks for its own tap among the indices around it.
template <bool kTwoByTwo>
__global__ void max_pool_index_gradient_kernel(Steps<kTwoByTwo> steps,
                                               PlaneArray<const TapIndex> index,
                                               PlaneArray<const float> dy, OtherPlanes other,
                                               PlaneArray<float> dx, std::int64_t planes) {
  for (auto i = global_thread(); i < planes * dx.size; i += all_threads()) {
    const std::int64_t plane = i / dx.size, input = i % dx.size;
    const auto indices = index.at(plane);
    const auto gradient = dy.at(plane);
    float sum = 0;
    steps.for_each_output(input, [&](std::int64_t output, std::int64_t tap) {
      const TapIndex best = indices[output];
      if (best == tap) sum += gradient[output];
    });
    sum = exact::canonical(sum);
    if (other.exists) {
      const float more = other.data.at(plane)[input];
      sum = exact::canonical(sum + more);
    }
    dx.at(plane)[input] = sum;
  }
}

template <int kEach>
__global__ void max_pool_index_groups_kernel(WindowGroups<kEach> groups, PlaneArray<const float> x,
                                             PlaneArray<float> y, PlaneArray<TapIndex> index) {
  groups.for_each([&](auto image, auto upper, auto lower, auto output) {
    const auto source = x.data.from(image * x.image_stride);
    const auto above = source.template load<2 * kEach>(upper);
    const auto below = source.template load<2 * kEach>(lower);
    Vector<float, kEach> largest;
    Vector<TapIndex, kEach> numbers;
#pragma unroll
    for (int w = 0; w < kEach; ++w) {
      const Largest best(above, below, w);
      largest[w] = best.value;
      numbers[w] = static_cast<TapIndex>(best.number);
    }
    y.data.from(image * y.image_stride).template store<kEach>(output, largest);
    index.data.from(image * index.image_stride).template store<kEach>(output, numbers);
  });
}

template <int kEach>
__global__ void max_pool_index_gradient_groups_kernel(WindowGroups<kEach> groups,
                                                      PlaneArray<const TapIndex> index,
                                                      PlaneArray<const float> dy, OtherPlanes other,
                                                      PlaneArray<float> dx) {
  groups.for_each([&](auto image, auto upper, auto lower, auto output) {
    const auto numbers = index.data.from(image * index.image_stride).template load<kEach>(output);
    const auto gradient = dy.data.from(image * dy.image_stride).template load<kEach>(output);
    const auto target = dx.data.from(image * dx.image_stride);
    SpreadRows<kEach> rows;
#pragma unroll
    for (int w = 0; w < kEach; ++w) rows.put(w, numbers[w], gradient[w]);
    if (other.exists) {
      const auto more = other.data.data.from(image * other.data.image_stride);
      rows.add(more.template load<2 * kEach>(upper), more.template load<2 * kEach>(lower));
    }
    target.template store<2 * kEach>(upper, rows.above);
    target.template store<2 * kEach>(lower, rows.below);
  });
}

/// Two windows per thread, so that every access has at least two bytes.
constexpr int kIndexedWindows = 2;

/// True when the kernels above read or write `index` by kIndexedWindows outputs.
bool moves_indices(const Planes& index, const std::byte* memory) {
  return index.image_stride % kIndexedWindows == 0 && is_aligned<kIndexedWindows>(memory);
}

class MaxPoolIndexKernel : public PoolKernel {
 public:
  explicit MaxPoolIndexKernel(const KernelQuery& query)
      : PoolKernel(query.as<MaxPoolWithIndex>().window(query.inputs[0].spec.shape)),
        x_(query.inputs[0]),
        y_(query.outputs[0]),
        index_(query.outputs[1]) {}

  void run(const KernelArgs& args) override {
    const PlaneArray x(x_, in_size(), args.in<float>(0));
    const PlaneArray y(y_, out_size(), args.out<float>(0));
    const PlaneArray index(index_, out_size(), args.out<TapIndex>(1));
    if (takes_groups<kIndexedWindows>(window(), {{x_, args.inputs[0]}}, {y_, args.outputs[0]}) &&
        moves_indices(index_, args.outputs[1])) {
      const WindowGroups<kIndexedWindows> groups(window(), y_);
      launch(args.stream, "max_pool_index_groups", one_dimension(groups.count),
             max_pool_index_groups_kernel<kIndexedWindows>, groups, x, y, index);
      return;
    }
    with_steps([&]<bool kTwoByTwo>(const Steps<kTwoByTwo>& steps) {
      launch(args.stream, "max_pool_index", one_dimension(y_.count * out_size()),
             max_pool_index_kernel<kTwoByTwo>, steps, x, y, index, y_.count);
    });
  }

 private:
  Planes x_, y_, index_;
};

std::unique_ptr<Kernel> prepare_max_pool_index(const KernelQuery& query, Device&) {
  if (query.inputs[0].channels_last)
    return std::make_unique<MaxPoolChannelsLast<MaxPoolWithIndex>>(query);
  return std::make_unique<MaxPoolIndexKernel>(query);
}

class MaxPoolIndexGradientKernel : public PoolKernel {
 public:
  MaxPoolIndexGradientKernel(const KernelQuery& query, Device&)
      : PoolKernel(query.as<MaxPoolIndexGradient>().window()),
        index_(query.inputs[0]),
        dy_(query.inputs[1]),
        dx_(query.outputs[0]) {
    if (query.inputs.size() > 2) other_.emplace(query.inputs[2]);
  }

  void run(const KernelArgs& args) override {
    const PlaneArray index(index_, out_size(), args.in<TapIndex>(0));
    const PlaneArray dy(dy_, out_size(), args.in<float>(1));
    const PlaneArray dx(dx_, in_size(), args.out<float>(0));
    OtherPlanes other;
    if (other_) other = {{*other_, in_size(), args.in<float>(2)}, true};
    // dx twice, where there is no other
    const PooledTensor second = {other_ ? *other_ : dx_, other_ ? args.inputs[2] : args.outputs[0]};
    if (takes_groups<kIndexedWindows>(window(), {{dx_, args.outputs[0]}, second},
                                      {dy_, args.inputs[1]}) &&
        moves_indices(index_, args.inputs[0])) {
      const WindowGroups<kIndexedWindows> groups(window(), dx_);
      launch(args.stream, "max_pool_index_gradient_groups", one_dimension(groups.count),
             max_pool_index_gradient_groups_kernel<kIndexedWindows>, groups, index, dy, other, dx);
      return;
    }
    with_steps([&]<bool kTwoByTwo>(const Steps<kTwoByTwo>& steps) {
      launch(args.stream, "max_pool_index_gradient", one_dimension(dx_.count * in_size()),
             max_pool_index_gradient_kernel<kTwoByTwo>, steps, index, dy, other, dx, dx_.count);
    });
  }

 private:
  Planes index_, dy_, dx_;
  std::optional<Planes> other_;
};

/// Another gradient of x that is stored channels last, or none.
struct OtherPieces {
  LastImages<const BFloat16> data;
  bool exists = false;

  /// Those of eight channels of a position.
  __device__ ChannelPiece at(std::int64_t image, std::int64_t position,
                             std::int64_t channel) const {
    ChannelPiece piece = {};
    if (exists) piece = data.piece(image, position, channel);
    return piece;
  }
  /// Gradients of eight channels, and the other ones.
  __device__ ChannelPiece add(const float (&gradients)[kPieceElements],
                              const ChannelPiece& others) const {
    ChannelPiece sums;
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      float sum = gradients[c];
      if (exists) sum = exact::canonical(sum + static_cast<float>(others[c]));
      sums[c] = BFloat16(sum);
    }
    return sums;
  }
};

/// dx of adjacent 2 x 2 windows that cover it. A thread owns eight channels of kEach windows side
/// by side: it reads their gradients and the index, and writes four positions per window.
template <int kEach>
__global__ void max_pool_spread_kernel(Steps<true> steps, ChannelTiles<kEach> tiles,
                                       PlaneArray<const TapIndex> index,
                                       LastImages<const BFloat16> dy, OtherPieces other,
                                       LastImages<BFloat16> dx) {
  tiles.for_tile([&](std::int64_t image, std::int64_t, std::int64_t piece, std::int64_t position) {
    const std::int64_t channel = piece * kPieceElements;
    Vector<TapIndex, kEach> taps[kPieceElements];
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      const std::int64_t at = image * index.image_stride + (channel + c) * index.size + position;
      if constexpr (kEach > 1) {
        taps[c] = index.data.template load<kEach>(at);
      } else {
        taps[c][0] = index.data[at];
      }
    }
#pragma unroll
    for (int p = 0; p < kEach; ++p) {
      const ChannelPiece gradient = dy.piece(image, position + p, channel);
      ChannelPiece others[4];  // read before the first result
      steps.for_each_input(position + p, [&](std::int64_t input, std::int64_t tap) {
        others[tap] = other.at(image, input, channel);
      });
      steps.for_each_input(position + p, [&](std::int64_t input, std::int64_t tap) {
        float spread[kPieceElements];
#pragma unroll
        for (int c = 0; c < kPieceElements; ++c) {
          const float sum = exact::canonical(0.0F + static_cast<float>(gradient[c]));
          spread[c] = taps[c][p] == tap ? sum : 0;
        }
        dx.put(image, input, channel, other.add(spread, others[tap]));
      });
    }
  });
}

/// dx of any windows. A thread owns eight channels of a position.
__global__ void max_pool_gather_kernel(Steps<false> steps, ChannelTiles<1> tiles,
                                       PlaneArray<const TapIndex> index,
                                       LastImages<const BFloat16> dy, OtherPieces other,
                                       LastImages<BFloat16> dx) {
  tiles.for_tile([&](std::int64_t image, std::int64_t, std::int64_t piece, std::int64_t position) {
    const std::int64_t channel = piece * kPieceElements;
    float sums[kPieceElements] = {};
    steps.for_each_output(position, [&](std::int64_t output, std::int64_t tap) {
      const ChannelPiece gradient = dy.piece(image, output, channel);
#pragma unroll
      for (int c = 0; c < kPieceElements; ++c) {
        const TapIndex best =
            index.data[image * index.image_stride + (channel + c) * index.size + output];
        if (best == tap) sums[c] += static_cast<float>(gradient[c]);
      }
    });
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) sums[c] = exact::canonical(sums[c]);
    dx.put(image, position, channel, other.add(sums, other.at(image, position, channel)));
  });
}

class MaxPoolGradientChannelsLast : public PoolKernel {
 public:
  /// dy, dx and the other gradient, or none.
  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const bool takes = may_be_rounded(query, query.outputs[0]);
    ChannelsLastOperands operands = {.output = takes, .all_or_none = true};
    operands.inputs.assign(query.inputs.size(), takes);
    operands.inputs[0] = false;
    return operands;
  }

  explicit MaxPoolGradientChannelsLast(const KernelQuery& query)
      : PoolKernel(query.as<MaxPoolIndexGradient>().window()),
        index_(query.inputs[0]),
        dy_(query.inputs[1]),
        dx_(query.outputs[0]) {
    if (query.inputs.size() > 2) other_.emplace(query.inputs[2]);
  }

  void run(const KernelArgs& args) override {
    const auto& w = window();
    if (!is_two_by_two(w) || 2 * w.out[0] != w.in[0] || 2 * w.out[1] != w.in[1]) {
      const auto tiles = dx_.tiles<1>();
      launch(args.stream, "max_pool_gather", tiles.shape(), max_pool_gather_kernel, Steps<false>{w},
             tiles, index(args), dy_.images_over(args.inputs[1]), other(args),
             dx_.images_over(args.outputs[0]));
    } else if (moves_taps<4>(out_size(), index_, args.inputs[0])) {
      spread<4>(args);
    } else {
      spread<1>(args);
    }
  }

 private:
  PlaneArray<const TapIndex> index(const KernelArgs& args) const {
    return {index_, out_size(), args.in<TapIndex>(0)};
  }
  OtherPieces other(const KernelArgs& args) const {
    if (!other_) return {};
    return {other_->images_over(args.inputs[2]), true};
  }
  template <int kEach>
  void spread(const KernelArgs& args) const {
    const auto tiles = dy_.tiles<kEach>();
    launch(args.stream, "max_pool_spread", tiles.shape(), max_pool_spread_kernel<kEach>,
           Steps<true>{window()}, tiles, index(args), dy_.images_over(args.inputs[1]), other(args),
           dx_.images_over(args.outputs[0]));
  }

  Planes index_;
  StoredChannels dy_, dx_;
  std::optional<StoredChannels> other_;
};

std::unique_ptr<Kernel> prepare_max_pool_index_gradient(const KernelQuery& query, Device& device) {
  if (query.outputs[0].channels_last) return std::make_unique<MaxPoolGradientChannelsLast>(query);
  return std::make_unique<MaxPoolIndexGradientKernel>(query, device);
}

}  // namespace

void add_pool_index_kernels(KernelList& list) {
  list.push_back(max_pool_entry(MaxPoolWithIndex::kName, &prepare_max_pool_index));
  auto gradient = kernel_entry<MaxPoolIndexGradientKernel>(MaxPoolIndexGradient::kName, "planes");
  gradient.channels_last = &MaxPoolGradientChannelsLast::channels_last;
  gradient.prepare = &prepare_max_pool_index_gradient;
  list.push_back(gradient);
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
