// Convolutions between images of one channel (thin) and of many (wide), and their weight gradients:
// the first and the last layer of a network. Tiles of tensor cores would be almost empty, and these
// kernels take as long as the wide image takes to be read or written. A thread has eight channels
// of one position after another, and keeps their weights, or the gradients of these, in registers.
// Operands are rounded to bfloat16, sums are of float32.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "backends/cuda/kernels/channel_pieces.cuh"
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/rounded_conv.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

__device__ float rounded(float value) { return static_cast<float>(BFloat16(value)); }

/// The taps of a window. Kernels get them as parameters: a thread needs them for each position.
struct ThinTaps {
  static constexpr int kMost = 9;
  int count = 0;
  Tap taps[kMost];

  static bool fits(std::int64_t count) { return count == 1 || count == kMost; }
  ThinTaps(const std::vector<WindowTap>& rows, const std::vector<WindowTap>& columns,
           std::int64_t kernel_width) {
    for (const auto& row : rows) {
      for (const auto& column : columns) {
        taps[count++] = {static_cast<std::int32_t>(row.offset),
                         static_cast<std::int32_t>(column.offset),
                         static_cast<std::int32_t>(row.tap * kernel_width + column.tap)};
      }
    }
  }
  /// With stride 1.
  static ThinTaps of(const Window& w, bool transposed) {
    if (transposed) return {phase_taps(w, 0, 0), phase_taps(w, 1, 0), w.kernel[1]};
    return {window_taps(w, 0), window_taps(w, 1), w.kernel[1]};
  }
};

/// The thin images, by the positions of the wide ones and a window of taps there.
struct ThinImages {
  Global<const float> data;
  std::int64_t image_stride = 0, height = 1, width = 1;
  ThinTaps window;
  WideDivisor wide_plane, wide_width;

  struct Place {
    std::int64_t image, position, y, x;
  };
  /// The place of position `i`, counted over all wide images.
  __device__ Place place(std::int64_t i) const {
    const std::int64_t image = wide_plane.divide(i), position = i - image * wide_plane.value();
    const std::int64_t y = wide_width.divide(position);
    return {image, position, y, position - y * wide_width.value()};
  }
  template <int kTaps>
  __device__ void read(const Place& at, float (&values)[kTaps]) const {
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      const std::int64_t y = at.y + window.taps[t].dy, x = at.x + window.taps[t].dx;
      const bool inside = y >= 0 && y < height && x >= 0 && x < width;
      float value = 0;
      if (inside) value = data[at.image * image_stride + y * width + x];
      values[t] = rounded(value);
    }
  }
};

/// The work of the threads: a thread has one piece of eight channels, neighbours the next one.
struct PieceWork {
  std::int64_t positions;  ///< of all images
  int pieces;              ///< a power of two, at most a warp

  __device__ std::int64_t channel() const {
    return threadIdx.x % static_cast<unsigned>(pieces) * kPieceElements;
  }
  __device__ std::int64_t first() const { return global_thread() / pieces; }
  __device__ std::int64_t step() const { return all_threads() / pieces; }
};

/// Weights of eight channels. w[channel * step + tap].
template <int kTaps>
struct PieceWeights {
  float values[kPieceElements][kTaps];

  __device__ PieceWeights(const Global<const float>& w, std::int64_t channel, std::int64_t step,
                          const ThinTaps& window) {
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
#pragma unroll
      for (int t = 0; t < kTaps; ++t) {
        const float value = w[(channel + c) * step + window.taps[t].number];
        values[c][t] = rounded(value);
      }
    }
  }
};

/// Wide images of a thin one: w_step counts the elements of w from a channel to the next.
template <int kTaps, class Target>
__global__ void __launch_bounds__(256, 2)
    thin_spread_kernel(PieceWork work, ThinImages thin, Global<const float> w, std::int64_t w_step,
                       FloatFinish finish, Target wide) {
  const std::int64_t channel = work.channel();
  const PieceWeights<kTaps> weights(w, channel, w_step, thin.window);
  for (auto i = work.first(); i < work.positions; i += work.step()) {
    const auto at = thin.place(i);
    float values[kTaps];
    thin.read(at, values);
    float sums[kPieceElements] = {};
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
#pragma unroll
      for (int t = 0; t < kTaps; ++t) sums[c] = std::fma(weights.values[c][t], values[t], sums[c]);
      sums[c] = finish(channel + c, exact::canonical(sums[c]));
    }
    wide.put(at.image, at.position, channel, sums);
  }
}

/// Thin images of a wide one, of one tap: a sum over the channels. All threads of a warp make each
/// call of a shuffle.
template <class Source>
__global__ void thin_gather_kernel(PieceWork work, ThinImages thin, Global<const float> w,
                                   std::int64_t w_step, FloatFinish finish, Source wide,
                                   Global<float> y, std::int64_t y_image) {
  constexpr int kAhead = 4;
  const std::int64_t channel = work.channel(), step = work.step();
  const PieceWeights<1> weights(w, channel, w_step, thin.window);
  const std::int64_t of_warp = (global_thread() - lane_of_warp()) / work.pieces;
  const std::int64_t behind = work.first() - of_warp;
  for (auto first = of_warp; first < work.positions; first += kAhead * step) {
    decltype(wide.read(0, 0, 0)) in[kAhead] = {};
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const std::int64_t i = first + behind + j * step;
      if (i >= work.positions) continue;
      const auto at = thin.place(i);
      in[j] = wide.read(at.image, at.position, channel);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      float sum = 0;
#pragma unroll
      for (int c = 0; c < kPieceElements; ++c) {
        sum = std::fma(weights.values[c][0], rounded(static_cast<float>(in[j][c])), sum);
      }
      for (int half = work.pieces / 2; half > 0; half /= 2) {
        sum += __shfl_xor_sync(kWholeWarp, sum, static_cast<unsigned>(half));
      }
      const std::int64_t i = first + behind + j * step;
      if (channel != 0 || i >= work.positions) continue;
      const auto at = thin.place(i);
      y[at.image * y_image + at.position] = finish(0, exact::canonical(sum));
    }
  }
}

inline constexpr int kThinWarps = 8;  ///< of a block of threads

/// Sums of the warps of a block.
template <int kTaps>
struct ThinSpace {
  Shared<float, kThinWarps, kPieceElements * kTaps * kLanes> sums;
};

/// Gradients of the weights, of the positions of each block of threads: [block, channel, tap].
template <int kTaps, class Source>
__global__ void __launch_bounds__(256, 2)
    thin_weight_gradient_kernel(PieceWork work, ThinImages thin, Source wide,
                                Global<float> of_blocks) {
  constexpr int kAhead = kTaps == 1 ? 4 : 2;
  const std::int64_t channel = work.channel(), step = work.step();
  float sums[kPieceElements][kTaps] = {};
  for (auto first = work.first(); first < work.positions; first += kAhead * step) {
    decltype(wide.read(0, 0, 0)) in[kAhead] = {};
    float values[kAhead][kTaps] = {};
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (first + j * step >= work.positions) continue;
      const auto at = thin.place(first + j * step);
      in[j] = wide.read(at.image, at.position, channel);
      thin.read(at, values[j]);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
#pragma unroll
      for (int c = 0; c < kPieceElements; ++c) {
        const float element = rounded(static_cast<float>(in[j][c]));
#pragma unroll
        for (int t = 0; t < kTaps; ++t) {
          sums[c][t] = std::fma(element, values[j][t], sums[c][t]);
        }
      }
    }
  }
  auto& space = shared<ThinSpace<kTaps>>();
#pragma unroll
  for (int c = 0; c < kPieceElements; ++c) {
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      for (int half = kLanes / 2; half >= work.pieces; half /= 2) {
        sums[c][t] += __shfl_xor_sync(kWholeWarp, sums[c][t], static_cast<unsigned>(half));
      }
      if (lane_of_warp() >= work.pieces) continue;
      space.sums(warp_of_block(), (static_cast<int>(channel) + c) * kTaps + t) = sums[c][t];
    }
  }
  __syncthreads();
  const int elements = work.pieces * kPieceElements * kTaps;
  for (int e = static_cast<int>(threadIdx.x); e < elements; e += static_cast<int>(blockDim.x)) {
    float sum = 0;
    for (int warp = 0; warp < kThinWarps; ++warp) {
      const float of_warp = space.sums(warp, e);
      sum += of_warp;
    }
    of_blocks[std::int64_t{blockIdx.x} * elements + e] = sum;
  }
}

/// dw, a warp per element.
__global__ void thin_weight_sums_kernel(Global<const float> of_blocks, int blocks, int elements,
                                        int taps, std::int64_t dw_step, Global<float> dw) {
  for (auto e = global_warp(); e < elements; e += all_warps()) {
    float sum = 0;
    for (std::int64_t block = lane_of_warp(); block < blocks; block += kLanes) {
      const float of_block = of_blocks[block * elements + e];
      sum += of_block;
    }
#pragma unroll
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      sum += __shfl_down_sync(kWholeWarp, sum, half);
    }
    if (lane_of_warp() == 0) dw[e / taps * dw_step + e % taps] = exact::canonical(sum);
  }
}

/// The wide operand: its channels and positions, as it lies.
class WideOperand {
 public:
  explicit WideOperand(const Operand& operand)
      : span_(operand), stored_(stored_channels(operand)), shape_(operand.spec.shape) {}

  static bool fits(const Operand& operand) {
    const auto& shape = operand.spec.shape;
    const auto channels = shape.rank() == 4 ? shape[1] : 0;
    const auto pieces = channels / kPieceElements;
    return channels % kPieceElements == 0 && pieces > 0 && pieces <= kLanes &&
           (pieces & (pieces - 1)) == 0;
  }

  PieceWork work() const {
    return {shape_[0] * plane(), static_cast<int>(shape_[1] / kPieceElements)};
  }
  std::int64_t plane() const { return shape_[2] * shape_[3]; }
  std::int64_t width() const { return shape_[3]; }
  std::int64_t channels() const { return shape_[1]; }

  /// Calls body(pieces of the operand), a target or a source.
  template <class Body>
  void over(std::byte* data, const Body& body) const {
    if (stored_) return body(LastPieces<BFloat16>{stored_->images_over(data)});
    body(PlanePieces<float>{span_.over(reinterpret_cast<float*>(data)), plane()});
  }
  template <class Body>
  void over(const std::byte* data, const Body& body) const {
    if (stored_) return body(LastPieces<const BFloat16>{stored_->images_over(data)});
    body(PlanePieces<const float>{span_.over(reinterpret_cast<const float*>(data)), plane()});
  }

 private:
  ImageSpan span_;
  std::optional<StoredChannels> stored_;
  Shape shape_;
};

/// Common part: taps and launch shapes.
class ThinKernel : public Kernel {
 protected:
  ThinKernel(const ThinTaps& taps, const Operand& wide, const Operand& thin)
      : taps_(taps), wide_(wide), thin_(thin), thin_shape_(thin.spec.shape) {}

  /// Blocks of threads that fill a large GPU twice. They depend on the sizes alone, so that a run
  /// has the same bits on every GPU.
  unsigned blocks() const {
    constexpr std::int64_t kMost = 264;
    const auto work = wide_.work();
    return static_cast<unsigned>(
        std::max<std::int64_t>(std::min(ceil_div(work.positions * work.pieces, kBlock), kMost), 1));
  }
  ThinImages images(const std::byte* thin) const {
    const auto over = thin_.over(reinterpret_cast<const float*>(thin));
    return {over.data,
            over.stride,
            thin_shape_[2],
            thin_shape_[3],
            taps_,
            WideDivisor(wide_.plane()),
            WideDivisor(wide_.width())};
  }
  /// Calls body(the number of taps as a constant).
  template <class Body>
  void with_taps(const Body& body) const {
    taps_.count == 1 ? body(std::integral_constant<int, 1>())
                     : body(std::integral_constant<int, ThinTaps::kMost>());
  }

  ThinTaps taps_;
  WideOperand wide_;
  ImageSpan thin_;
  Shape thin_shape_;
};

inline Verdict accepts_thin(const ConvGeometry& g, Contract contract, const Operand& wide) {
  if (contract != Contract::Bf16) return Verdict::no("rounds operands: for the contract bf16");
  if (g.groups != 1) return Verdict::no("needs one group");
  if (g.window.stride[0] != 1 || g.window.stride[1] != 1) return Verdict::no("needs stride 1");
  if (!WideOperand::fits(wide)) {
    return Verdict::no("needs 8, 16, 32, 64, 128 or 256 channels beside the single one");
  }
  return Verdict::yes();
}

/// Conv, or ConvTranspose. From one channel, or with one tap to one channel.
template <class Op, bool kTransposed>
class ThinConv : public ThinKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry_of(query.as<Op>(), query);
    const auto sides = sides_of(g, query.inputs[1], kTransposed);
    const bool spreads = sides.in_channels == 1;
    if (!spreads && (sides.out_channels != 1 || !g.window.is_pointwise())) {
      return Verdict::no("needs one channel in, or one channel out and one tap");
    }
    if (spreads && !ThinTaps::fits(g.taps())) return Verdict::no("needs 1 or 9 taps");
    return accepts_thin(g, query.contract, spreads ? query.outputs[0] : query.inputs[0]);
  }
  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const bool spreads = query.inputs[0].spec.shape[1] == 1;
    return {.inputs = {!spreads && reads_channels_last(query.inputs[0], 1, kPieceElements)},
            .output = spreads && may_be_rounded(query, query.outputs[0])};
  }

  ThinConv(const KernelQuery& query, Device&)
      : ThinConv(query, geometry_of(query.as<Op>(), query)) {}

  void run(const KernelArgs& args) override {
    const auto work = wide_.work();
    if (work.positions == 0) return;
    const Global<const float> w(args.in<float>(1), w_span_);
    spreads_ ? spread(args, work, w) : gather(args, work, w);
  }

 private:
  ThinConv(const KernelQuery& query, const ConvGeometry& g)
      : ThinKernel(ThinTaps::of(g.window, kTransposed),
                   query.inputs[0].spec.shape[1] == 1 ? query.outputs[0] : query.inputs[0],
                   query.inputs[0].spec.shape[1] == 1 ? query.inputs[0] : query.outputs[0]),
        spreads_(query.inputs[0].spec.shape[1] == 1),
        relu_(has_relu(query.as<Op>())),
        w_span_(span_of(query.inputs[1])),
        y_span_(span_of(query.outputs[0])) {
    const auto sides = sides_of(g, query.inputs[1], kTransposed);
    w_step_ = spreads_ ? sides.w_row : sides.w_channel;
  }

  void spread(const KernelArgs& args, const PieceWork& work, const Global<const float>& w) const {
    const FloatFinish finish(args, wide_.channels(), relu_);
    with_taps([&]<int kTaps>(std::integral_constant<int, kTaps>) {
      wide_.over(args.outputs[0], [&]<class Target>(const Target& target) {
        launch(args.stream, "conv_thin_spread", {{blocks()}, {kBlock}, 0},
               thin_spread_kernel<kTaps, Target>, work, images(args.inputs[0]), w, w_step_, finish,
               target);
      });
    });
  }

  void gather(const KernelArgs& args, const PieceWork& work, const Global<const float>& w) const {
    wide_.over(args.inputs[0], [&]<class Source>(const Source& source) {
      launch(args.stream, "conv_thin_gather", {{4 * blocks()}, {kBlock}, 0},
             thin_gather_kernel<Source>, work, images(args.outputs[0]), w, w_step_,
             FloatFinish(args, 1, relu_), source, Global<float>(args.out<float>(0), y_span_),
             thin_.stride);
    });
  }

  bool spreads_, relu_;
  std::int64_t w_span_, y_span_, w_step_ = 0;
};

/// x or dy has one channel. If it is dy, there is one tap.
class ThinWeightGradient : public ThinKernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry_of(query.as<ConvWeightGradient>(), query);
    const bool of_x = g.group_in() == 1;
    if (!of_x && (g.group_out() != 1 || !g.window.is_pointwise())) {
      return Verdict::no("needs one channel in, or one channel out and one tap");
    }
    if (!ThinTaps::fits(g.taps())) return Verdict::no("needs 1 or 9 taps");
    return accepts_thin(g, query.contract, query.inputs[of_x ? 1 : 0]);
  }
  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const bool of_x = query.inputs[0].spec.shape[1] == 1;
    return {.inputs = {!of_x && reads_channels_last(query.inputs[0], 1, kPieceElements),
                       of_x && reads_channels_last(query.inputs[1], 1, kPieceElements)}};
  }

  ThinWeightGradient(const KernelQuery& query, Device&)
      : ThinWeightGradient(query, geometry_of(query.as<ConvWeightGradient>(), query)) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(blocks() * elements()) * sizeof(float);
  }

  void run(const KernelArgs& args) override {
    auto* sums = reinterpret_cast<float*>(args.scratch);
    const auto all = static_cast<std::int64_t>(blocks()) * elements();
    with_taps([&]<int kTaps>(std::integral_constant<int, kTaps>) {
      wide_.over(args.inputs[wide_input_], [&]<class Source>(const Source& source) {
        launch(args.stream, "conv_weight_gradient_thin",
               {{blocks()}, {kBlock}, sizeof(ThinSpace<kTaps>)},
               thin_weight_gradient_kernel<kTaps, Source>, wide_.work(),
               images(args.inputs[1 - wide_input_]), source, Global<float>(sums, all));
      });
    });
    launch(args.stream, "conv_weight_sums_thin", one_dimension(std::int64_t{elements()} * kLanes),
           thin_weight_sums_kernel, Global<const float>(sums, all), static_cast<int>(blocks()),
           elements(), static_cast<int>(taps_.count), dw_step_,
           Global<float>(args.out<float>(0), dw_span_));
  }

 private:
  ThinWeightGradient(const KernelQuery& query, const ConvGeometry& g)
      : ThinKernel(ThinTaps::of(g.window, false), query.inputs[g.group_in() == 1 ? 1 : 0],
                   query.inputs[g.group_in() == 1 ? 0 : 1]),
        wide_input_(g.group_in() == 1 ? 1 : 0),
        dw_step_(g.group_in() == 1 ? query.outputs[0].outer_stride : 1),
        dw_span_(span_of(query.outputs[0])) {}

  int elements() const { return static_cast<int>(wide_.channels() * taps_.count); }

  std::size_t wide_input_;
  std::int64_t dw_step_, dw_span_;
};

}  // namespace

void add_thin_conv_kernels(KernelList& list) {
  add_for_bf16(list, channels_last_entry<ThinConv<Conv, false>>(Conv::kName, "thin"));
  add_for_bf16(list,
               channels_last_entry<ThinConv<ConvTranspose, true>>(ConvTranspose::kName, "thin"));
  add_for_bf16(list, channels_last_entry<ThinWeightGradient>(ConvWeightGradient::kName, "thin"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
