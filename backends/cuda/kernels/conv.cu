// Convolution and its transpose as implicit products: patches of images are read where they lie and
// never stored. In float32, or in integers for the quantised operators.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv.h"

#include "backends/cuda/kernels/conv_taps.cuh"
#include "backends/cuda/kernels/gemm.cuh"
#include "backends/cuda/kernels/operand_span.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/quantized_conv.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// Images with patches as an operand: position (oy, ox) reads (oy * stride + dy, ox * stride + dx).
template <class T>
struct Patches {
  Global<const T> x;
  std::int64_t image_stride = 0, group_stride = 0;  ///< elements
  std::int64_t channels = 1;                        ///< of one group
  std::int64_t height = 1, width = 1, out_width = 1;
  std::int64_t stride_y = 1, stride_x = 1;
  std::int64_t groups = 1;
  Global<const Tap> taps;

  /// Where the images of a batch entry, one group of one image, start.
  __device__ std::int64_t first(std::int64_t entry) const {
    return entry / groups * image_stride + entry % groups * group_stride;
  }
  /// Padding reads as 0.
  __device__ T at(std::int64_t first, std::int64_t channel, std::int64_t position,
                  const Tap& tap) const {
    const std::int64_t y = position / out_width * stride_y + tap.dy;
    const std::int64_t column = position % out_width * stride_x + tap.dx;
    if (y < 0 || y >= height || column < 0 || column >= width) return T{0};
    return x[first + channel * height * width + y * width + column];
  }
};

/// An int32 sum that is the result, after bias and cut (core/ops/quantized_conv.h).
struct SumFinish {
  using In = std::int8_t;
  using Value = std::int32_t;
  using Out = std::int32_t;
  Global<const std::int32_t> bias;
  bool has_bias = false, relu = false;

  SumFinish(const KernelArgs& args, std::int64_t channels, bool cut) : relu(cut) {
    has_bias = args.inputs.size() > 2;
    if (has_bias) bias = {args.in<std::int32_t>(2), channels};
  }
  __device__ std::int32_t operator()(std::int64_t channel, std::int32_t sum) const {
    if (has_bias) sum = wrapping_add(sum, bias[channel]);
    return relu && sum < 0 ? 0 : sum;
  }
};

/// An int32 sum that becomes int8.
struct RequantizeFinish {
  using In = std::int8_t;
  using Value = std::int32_t;
  using Out = std::int8_t;
  Global<const std::int32_t> bias, multiplier, shift;
  bool relu = false;

  RequantizeFinish(const KernelArgs& args, std::int64_t channels, bool cut)
      : bias(args.in<std::int32_t>(2), channels),
        multiplier(args.in<std::int32_t>(3), channels),
        shift(args.in<std::int32_t>(4), channels),
        relu(cut) {}
  __device__ std::int8_t operator()(std::int64_t channel, std::int32_t sum) const {
    const auto value =
        requantize(wrapping_add(sum, bias[channel]), multiplier[channel], shift[channel]);
    return saturate_to_i8(relu && value < 0 ? 0 : value);
  }
};

/// y[o, p] = sum over k = (tap, channel) of w[o, k] patch[k, p]. A batch entry is one group of one
/// image. Positions go to rows of y `row_step` elements apart, `column_step` within a row.
template <class Finish, bool kRound>
struct ConvProblem {
  using Value = typename Finish::Value;
  static constexpr bool kRowsAlongK = false, kColumnsAlongN = true;

  GemmSizes sizes;
  Patches<typename Finish::In> patches;
  Global<const typename Finish::In> w;
  std::int64_t w_row = 0, w_channel = 0, w_group = 0;  ///< elements to the next of each
  Global<typename Finish::Out> y;
  std::int64_t y_image = 0, y_plane = 0, y_first = 0, y_row = 0, y_column = 1;
  Finish finish;

  struct Entry {
    const ConvProblem& problem;
    std::int64_t x_first, w_first, channel_first, y_first;

    __device__ Value rounded(Value value) const {
      if constexpr (kRound) return operand<true>(value);
      return value;
    }
    __device__ Value a(std::int64_t m, std::int64_t k) const {
      const auto& patches = problem.patches;
      const Tap tap = patches.taps[k / patches.channels];
      const std::int64_t channel = k % patches.channels;
      const typename Finish::In value =
          problem.w[w_first + m * problem.w_row + channel * problem.w_channel + tap.number];
      return rounded(value);
    }
    __device__ Value b(std::int64_t k, std::int64_t n) const {
      const auto& patches = problem.patches;
      const Tap tap = patches.taps[k / patches.channels];
      return rounded(patches.at(x_first, k % patches.channels, n, tap));
    }
    __device__ void store(std::int64_t m, std::int64_t n, Value sum) const {
      const std::int64_t row = n / problem.patches.out_width;
      const std::int64_t column = n % problem.patches.out_width;
      problem.y[y_first + m * problem.y_plane + row * problem.y_row + column * problem.y_column] =
          problem.finish(channel_first + m, sum);
    }
  };
  __device__ Entry entry(std::int64_t batch) const {
    const std::int64_t image = batch / patches.groups, group = batch % patches.groups;
    const std::int64_t channel = group * sizes.m;
    return {*this, patches.first(batch), group * w_group, channel,
            image * y_image + channel * y_plane + y_first};
  }
};

template <class Op, class Finish>
class ConvKernel : public Kernel {
  using In = typename Finish::In;
  using Out = typename Finish::Out;

 public:
  ConvKernel(const KernelQuery& query, Device& device)
      : g_(query.as<Op>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape)),
        relu_(has_relu(query.as<Op>())),
        round_(std::is_same_v<In, float> && rounds_operands(query.contract)),
        x_(query.inputs[0]),
        w_(query.inputs[1]),
        y_(query.outputs[0]),
        taps_(device, window_taps(g_.window, 0), window_taps(g_.window, 1), g_.window.kernel[1]) {}

  static Verdict accepts(const KernelQuery& query) {
    const auto g = query.as<Op>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
    return accepts_gemm({g.batch * g.groups, g.group_out(), g.out_plane(), 1},
                        std::is_same_v<In, float> ? query.contract : Contract::F32);
  }

  std::size_t resident_bytes() const override { return taps_.bytes(); }

  void run(const KernelArgs& args) override {
    if constexpr (std::is_same_v<In, float>) {
      if (round_) return run_as<true>(args);
    }
    run_as<false>(args);
  }

 private:
  template <bool kRound>
  void run_as(const KernelArgs& args) const {
    const auto& w = g_.window;
    const ConvProblem<Finish, kRound> problem = {
        .sizes = {g_.batch * g_.groups, g_.group_out(), g_.out_plane(),
                  g_.group_in() * taps_.size()},
        .patches = {.x = {args.in<In>(0), span_of(x_)},
                    .image_stride = x_.outer_stride,
                    .group_stride = g_.group_in() * g_.in_plane(),
                    .channels = g_.group_in(),
                    .height = w.in[0],
                    .width = w.in[1],
                    .out_width = w.out[1],
                    .stride_y = w.stride[0],
                    .stride_x = w.stride[1],
                    .groups = g_.groups,
                    .taps = taps_.global()},
        .w = {args.in<In>(1), span_of(w_)},
        .w_row = w_.outer_stride,
        .w_channel = g_.taps(),
        .w_group = g_.group_out() * w_.outer_stride,
        .y = {args.out<Out>(0), span_of(y_)},
        .y_image = y_.outer_stride,
        .y_plane = g_.out_plane(),
        .y_row = w.out[1],
        .finish = Finish(args, g_.out_channels, relu_)};
    launch_gemm(args.stream, "conv", problem);
  }

  ConvGeometry g_;
  bool relu_, round_;
  Operand x_, w_, y_;
  TapTable taps_;
};

/// Outputs q = remainder + stride * j are reached by the same taps for every j: one product for
/// each remainder. The geometry is that of the convolution with this operator as input gradient:
/// its y is our x.
template <class Op, class Finish>
class ConvTransposeKernel : public Kernel {
  using In = typename Finish::In;
  using Out = typename Finish::Out;

 public:
  ConvTransposeKernel(const KernelQuery& query, Device& device)
      : g_(query.as<Op>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape)),
        relu_(has_relu(query.as<Op>())),
        round_(std::is_same_v<In, float> && rounds_operands(query.contract)),
        x_(query.inputs[0]),
        w_(query.inputs[1]),
        y_(query.outputs[0]) {
    const auto& w = g_.window;
    for (std::int64_t row = 0; row < std::min(w.stride[0], w.in[0]); ++row) {
      for (std::int64_t column = 0; column < std::min(w.stride[1], w.in[1]); ++column) {
        phases_.push_back(
            {row, column,
             TapTable(device, phase_taps(w, 0, row), phase_taps(w, 1, column), w.kernel[1])});
      }
    }
  }

  static Verdict accepts(const KernelQuery& query) {
    const auto g = query.as<Op>().geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
    return accepts_gemm({g.batch * g.groups, g.group_in(), g.in_plane(), 1},
                        std::is_same_v<In, float> ? query.contract : Contract::F32);
  }

  std::size_t resident_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& phase : phases_) bytes += phase.taps.bytes();
    return bytes;
  }

  void run(const KernelArgs& args) override {
    for (const Phase& phase : phases_) {
      if constexpr (std::is_same_v<In, float>) {
        if (round_) {
          run_phase<true>(args, phase);
          continue;
        }
      }
      run_phase<false>(args, phase);
    }
  }

 private:
  struct Phase {
    std::int64_t row, column;
    TapTable taps;
  };

  template <bool kRound>
  void run_phase(const KernelArgs& args, const Phase& phase) const {
    const auto& w = g_.window;
    const auto rows = (w.in[0] - phase.row + w.stride[0] - 1) / w.stride[0];
    const auto columns = (w.in[1] - phase.column + w.stride[1] - 1) / w.stride[1];
    const ConvProblem<Finish, kRound> problem = {
        .sizes = {g_.batch * g_.groups, g_.group_in(), rows * columns,
                  g_.group_out() * phase.taps.size()},
        .patches = {.x = {args.in<In>(0), span_of(x_)},
                    .image_stride = x_.outer_stride,
                    .group_stride = g_.group_out() * g_.out_plane(),
                    .channels = g_.group_out(),
                    .height = w.out[0],
                    .width = w.out[1],
                    .out_width = columns,
                    .groups = g_.groups,
                    .taps = phase.taps.global()},
        .w = {args.in<In>(1), span_of(w_)},
        .w_row = g_.taps(),
        .w_channel = w_.outer_stride,
        .w_group = g_.group_out() * w_.outer_stride,
        .y = {args.out<Out>(0), span_of(y_)},
        .y_image = y_.outer_stride,
        .y_plane = g_.in_plane(),
        .y_first = phase.row * w.in[1] + phase.column,
        .y_row = w.stride[0] * w.in[1],
        .y_column = w.stride[1],
        .finish = Finish(args, g_.in_channels, relu_)};
    launch_gemm(args.stream, "conv_transpose", problem);
  }

  ConvGeometry g_;
  bool relu_, round_;
  Operand x_, w_, y_;
  std::vector<Phase> phases_;
};

/// The kernel K of a quantised operator: for int8 outputs, or the int32 sums themselves.
template <template <class, class> class K, class Op>
KernelEntry integer_entry() {
  return {Op::kName, "implicit", &K<Op, SumFinish>::accepts,
          [](const KernelQuery& query, Device& device) -> std::unique_ptr<Kernel> {
            if (query.outputs[0].spec.dtype == DType::I8) {
              return std::make_unique<K<Op, RequantizeFinish>>(query, device);
            }
            return std::make_unique<K<Op, SumFinish>>(query, device);
          }};
}

}  // namespace

void add_conv_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvKernel<Conv, FloatFinish>>(Conv::kName, "implicit"));
  list.push_back(kernel_entry<ConvTransposeKernel<ConvTranspose, FloatFinish>>(ConvTranspose::kName,
                                                                               "implicit"));
  list.push_back(integer_entry<ConvKernel, QuantizedConv>());
  list.push_back(integer_entry<ConvTransposeKernel, QuantizedConvTranspose>());
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
