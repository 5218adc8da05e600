// Convolutions on the tensor cores as implicit products: images are rounded to bfloat16 with their
// channels innermost, and eight channels of one pixel are one piece of a copy. Patches are never
// stored.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/channel_tiles.cuh"
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/rounded_conv.cuh"
#include "backends/cuda/kernels/tensor_core_gemm.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Rounded images [N, height, width, groups, channels] with patches as an operand: a row is a
/// position of the output in one of the images, a column a tap and channel.
struct RoundedPatches {
  std::int64_t height = 1, width = 1, pitch = 1;  ///< pitch: elements of a pixel
  std::int64_t stride_y = 1, stride_x = 1;
  Divisor positions, out_width, channels;  ///< positions: of an image's output
  Global<const Tap> taps;

  /// From the group's first channel.
  __device__ PiecePlace at(std::int64_t row, std::int64_t column) const {
    const auto r = static_cast<std::uint32_t>(row), c = static_cast<std::uint32_t>(column);
    const std::uint32_t image = positions.divide(r), position = r - image * positions.value();
    const std::uint32_t oy = out_width.divide(position), ox = position - oy * out_width.value();
    const std::uint32_t number = channels.divide(c), channel = c - number * channels.value();
    const Tap tap = taps[number];
    const std::int64_t y = oy * stride_y + tap.dy, x = ox * stride_x + tap.dx;
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return {((image * height + y) * width + x) * pitch + channel, inside};
  }
};

/// y[o, (image, p)] = sum over k = (tap, channel) of w[o, k] patch[p, k]. A batch entry is a group.
/// Out: float in planes, or BFloat16 with the channels of a position together.
template <class Out>
struct RoundedConvProblem {
  static constexpr bool kRowsAlongK = true, kColumnsAlongN = false;

  GemmSizes sizes;
  Global<const BFloat16> left, right;
  RoundedPatches patches;
  std::int64_t channels = 1;  ///< of a group, padded
  Global<Out> y;
  std::int64_t y_image = 0, y_plane = 0, y_first = 0, y_row = 0, y_column = 1;
  bool whole_pairs = false;  ///< even and odd columns lie together, at multiples of two floats
  FloatFinish finish;

  struct Entry {
    const RoundedConvProblem& problem;
    Global<const BFloat16> left, right;
    std::int64_t group;

    __device__ PiecePlace at_a(std::int64_t m, std::int64_t k) const {
      const auto& sizes = problem.sizes;
      return {m * sizes.k + k, m < sizes.m && k < sizes.k};
    }
    __device__ PiecePlace at_b(std::int64_t k, std::int64_t n) const {
      if (n >= problem.sizes.n || k >= problem.sizes.k) return {0, false};
      return problem.patches.at(n, k);
    }
    __device__ std::int64_t at_y(std::int64_t m, std::int64_t n) const {
      const auto& patches = problem.patches;
      const auto column = static_cast<std::uint32_t>(n);
      const std::uint32_t image = patches.positions.divide(column);
      const std::uint32_t position = column - image * patches.positions.value();
      const std::uint32_t oy = patches.out_width.divide(position);
      const std::uint32_t ox = position - oy * patches.out_width.value();
      return image * problem.y_image + (group * problem.sizes.m + m) * problem.y_plane +
             problem.y_first + oy * problem.y_row + ox * problem.y_column;
    }
    __device__ void store(std::int64_t m, std::int64_t n, float sum) const {
      problem.y[at_y(m, n)] = Out(problem.finish(group * problem.sizes.m + m, canonical(sum)));
    }
    __device__ void store_inside(std::int64_t m, std::int64_t n, float first, float second) const {
      if (m >= problem.sizes.m || n >= problem.sizes.n) return;
      if constexpr (std::is_same_v<Out, float>) {
        if (problem.whole_pairs) {
          const std::int64_t channel = group * problem.sizes.m + m;
          problem.y.template store<2>(at_y(m, n), {{problem.finish(channel, canonical(first)),
                                                    problem.finish(channel, canonical(second))}});
          return;
        }
      }
      store(m, n, first);
      if (n + 1 < problem.sizes.n) store(m, n + 1, second);
    }
  };
  __device__ Entry entry(std::int64_t group) const {
    return {*this, left.from(group * sizes.m * sizes.k), right.from(group * channels), group};
  }
};

/// dw[o, (tap, channel)] = sum over k = (image, position) of dy[k, o] patch[k, (tap, channel)]. A
/// batch entry is a group.
struct RoundedWeightGradientProblem {
  static constexpr bool kRowsAlongK = false, kColumnsAlongN = true;

  GemmSizes sizes;  ///< n: of padded channels
  Global<const BFloat16> left, right;
  RoundedPatches patches;
  std::int64_t dy_pitch = 1, dy_channels = 1;     ///< of a position, of a group, padded
  std::int64_t channels = 1, group_channels = 1;  ///< padded, and those there are
  std::int64_t taps = 1;
  Global<float> dw;
  std::int64_t dw_row = 0;

  struct Entry {
    const RoundedWeightGradientProblem& problem;
    Global<const BFloat16> left, right;
    std::int64_t group;

    __device__ PiecePlace at_a(std::int64_t m, std::int64_t k) const {
      return {k * problem.dy_pitch + m, m < problem.dy_channels && k < problem.sizes.k};
    }
    __device__ PiecePlace at_b(std::int64_t k, std::int64_t n) const {
      if (n >= problem.sizes.n || k >= problem.sizes.k) return {0, false};
      return problem.patches.at(k, n);
    }
    __device__ void store(std::int64_t m, std::int64_t n, float sum) const {
      const std::int64_t tap = problem.patches.channels.divide(static_cast<std::uint32_t>(n));
      const std::int64_t channel = n - tap * problem.channels;
      if (channel >= problem.group_channels) return;
      problem.dw[(group * problem.sizes.m + m) * problem.dw_row + channel * problem.taps + tap] =
          canonical(sum);
    }
    __device__ void store_inside(std::int64_t m, std::int64_t n, float first, float second) const {
      if (m >= problem.sizes.m || n >= problem.sizes.n) return;
      store(m, n, first);
      store(m, n + 1, second);  // n ends with whole pieces
    }
  };
  __device__ Entry entry(std::int64_t group) const {
    return {*this, left.from(group * dy_channels), right.from(group * channels), group};
  }
};

/// Conv, in one phase, or ConvTranspose, in one for each remainder of an output by the stride.
template <class Op, bool kTransposed>
class TensorCoreConv : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry_of(query.as<Op>(), query);
    const auto sides = sides_of(g, query.inputs[1], kTransposed);
    return accepts_tensor_core({g.groups, sides.out_channels, g.batch * sides.out_plane(),
                                padded(sides.in_channels) * g.taps()},
                               query.contract);
  }

  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const auto groups = geometry_of(query.as<Op>(), query).groups;
    return {.inputs = {reads_channels_last(query.inputs[0], groups, kPieceElements)},
            .output = groups == 1 && may_be_rounded(query, query.outputs[0])};
  }

  TensorCoreConv(const KernelQuery& query, Device& device)
      : g_(geometry_of(query.as<Op>(), query)),
        sides_(sides_of(g_, query.inputs[1], kTransposed)),
        x_(query.inputs[0], g_.groups, sides_.in_channels, sides_.in_plane()),
        w_span_(span_of(query.inputs[1])),
        y_(query.outputs[0]),
        stored_y_(stored_channels(query.outputs[0])),
        relu_(has_relu(query.as<Op>())),
        phases_(conv_phases(device, g_.window, kTransposed)) {}

  std::size_t resident_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& phase : phases_) bytes += phase.taps.bytes();
    return bytes;
  }
  std::size_t scratch_bytes() const override {
    std::size_t sums = 0;
    for (const auto& phase : phases_) sums = std::max(sums, partial_bytes(sizes_of(phase)));
    return x_.bytes() + weight_bytes() + sums;
  }

  void run(const KernelArgs& args) override {
    const auto images = x_.round(args.stream, args.inputs[0], args.scratch);
    for (const auto& phase : phases_) {
      stored_y_ ? run_phase<BFloat16>(args, phase, images) : run_phase<float>(args, phase, images);
    }
  }

 private:
  GemmSizes sizes_of(const ConvPhase& phase) const {
    return {g_.groups, sides_.out_channels, g_.batch * phase.rows * phase.columns,
            phase.taps.size() * padded(sides_.in_channels)};
  }
  /// Bytes for the phase with the most taps.
  std::size_t weight_bytes() const {
    std::size_t bytes = 0;
    for (const auto& phase : phases_) {
      const auto sizes = sizes_of(phase);
      bytes = std::max(bytes, whole_lines(sizes.batch * sizes.m * sizes.k));
    }
    return bytes;
  }

  /// Where y lies: elements from an image, a channel and a position to the next, and of all.
  struct Layout {
    std::int64_t image, channel, position, span;
  };
  Layout layout() const {
    if (!stored_y_) return {y_.outer_stride, sides_.out_plane(), 1, span_of(y_)};
    const auto pitch = stored_y_->format.pitch;
    return {sides_.out_plane() * pitch, 1, pitch, stored_y_->span()};
  }

  template <class Out>
  void run_phase(const KernelArgs& args, const ConvPhase& phase,
                 const Global<const BFloat16>& images) const {
    const auto positions = phase.rows * phase.columns;
    const auto out_plane = sides_.out_plane();
    const auto y = layout();
    const RoundedConvProblem<Out> problem = {
        .sizes = sizes_of(phase),
        .left = round_taps(args, phase, sides_, w_span_, args.scratch + x_.bytes()),
        .right = images,
        .patches = {.height = sides_.in[0],
                    .width = sides_.in[1],
                    .pitch = x_.pitch(),
                    .stride_y = sides_.stride[0],
                    .stride_x = sides_.stride[1],
                    .positions = Divisor(positions),
                    .out_width = Divisor(phase.columns),
                    .channels = Divisor(padded(sides_.in_channels)),
                    .taps = phase.taps.global()},
        .channels = padded(sides_.in_channels),
        .y = {args.out<Out>(0), y.span},
        .y_image = y.image,
        .y_plane = y.channel,
        .y_first = (phase.row * sides_.out[1] + phase.column) * y.position,
        .y_row = phase.row_step * sides_.out[1] * y.position,
        .y_column = phase.column_step * y.position,
        .whole_pairs = phase.column_step == 1 && positions == out_plane && out_plane % 2 == 0 &&
                       y.image % 2 == 0,
        .finish = FloatFinish(args, g_.groups * sides_.out_channels, relu_)};
    launch_tensor_core_gemm(args.stream,
                            kTransposed ? "conv_transpose_tensor_core" : "conv_tensor_core",
                            problem, args.scratch + x_.bytes() + weight_bytes());
  }

  ConvGeometry g_;
  ConvSides sides_;
  RoundedImages x_;
  std::int64_t w_span_;
  Operand y_;
  std::optional<StoredChannels> stored_y_;
  bool relu_;
  std::vector<ConvPhase> phases_;
};

class TensorCoreWeightGradient : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    return accepts_tensor_core(sizes_of(geometry_of(query.as<ConvWeightGradient>(), query)),
                               query.contract);
  }

  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const auto groups = geometry_of(query.as<ConvWeightGradient>(), query).groups;
    return {.inputs = {reads_channels_last(query.inputs[0], groups, kPieceElements),
                       reads_channels_last(query.inputs[1], groups, kPieceElements)}};
  }

  TensorCoreWeightGradient(const KernelQuery& query, Device& device)
      : g_(geometry_of(query.as<ConvWeightGradient>(), query)),
        x_(query.inputs[0], g_.groups, g_.group_in(), g_.in_plane()),
        dy_(query.inputs[1], g_.groups, g_.group_out(), g_.out_plane()),
        dw_(query.outputs[0]),
        taps_(device, window_taps(g_.window, 0), window_taps(g_.window, 1), g_.window.kernel[1]) {}

  std::size_t resident_bytes() const override { return taps_.bytes(); }
  std::size_t scratch_bytes() const override {
    return x_.bytes() + dy_.bytes() + partial_bytes(sizes_of(g_));
  }

  void run(const KernelArgs& args) override {
    const auto& w = g_.window;
    const RoundedWeightGradientProblem problem = {
        .sizes = sizes_of(g_),
        .left = dy_.round(args.stream, args.inputs[1], args.scratch + x_.bytes()),
        .right = x_.round(args.stream, args.inputs[0], args.scratch),
        .patches = {.height = w.in[0],
                    .width = w.in[1],
                    .pitch = x_.pitch(),
                    .stride_y = w.stride[0],
                    .stride_x = w.stride[1],
                    .positions = Divisor(g_.out_plane()),
                    .out_width = Divisor(w.out[1]),
                    .channels = Divisor(padded(g_.group_in())),
                    .taps = taps_.global()},
        .dy_pitch = dy_.pitch(),
        .dy_channels = padded(g_.group_out()),
        .channels = padded(g_.group_in()),
        .group_channels = g_.group_in(),
        .taps = g_.taps(),
        .dw = {args.out<float>(0), span_of(dw_)},
        .dw_row = dw_.outer_stride};
    launch_tensor_core_gemm(args.stream, "conv_weight_gradient_tensor_core", problem,
                            args.scratch + x_.bytes() + dy_.bytes());
  }

 private:
  static GemmSizes sizes_of(const ConvGeometry& g) {
    return {g.groups, g.group_out(), padded(g.group_in()) * g.taps(), g.batch * g.out_plane()};
  }

  ConvGeometry g_;
  RoundedImages x_, dy_;
  Operand dw_;
  TapTable taps_;
};

}  // namespace

void add_tensor_core_conv_kernels(KernelList& list) {
  add_for_bf16(list, channels_last_entry<TensorCoreConv<Conv, false>>(Conv::kName, "tensor-core"));
  add_for_bf16(list, channels_last_entry<TensorCoreConv<ConvTranspose, true>>(ConvTranspose::kName,
                                                                              "tensor-core"));
  add_for_bf16(list, channels_last_entry<TensorCoreWeightGradient>(ConvWeightGradient::kName,
                                                                   "tensor-core"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
