// Transposed convolution by phases: the outputs at positions with the same remainder modulo the
// stride are a convolution of stride 1 over x with the taps that can meet them. Where kernel and
// stride agree, each tap is a phase of its own that meets the same x: one problem with the taps
// side by side in the columns.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_transpose.h"

#include <algorithm>

#include "backends/systolic/kernels/conv_stream.h"
#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/stream_kernel.h"
#include "core/base/checked_math.h"
#include "core/ops/quantized_conv.h"

namespace triptych::systolic {
namespace {

/// The taps of one axis that meet outputs remainder + stride * j, in ascending order, and the
/// convolution's axis that they make.
struct PhaseAxis {
  StreamAxis axis;
  std::vector<std::int64_t> taps;

  PhaseAxis(const Window& w, int a, std::int64_t remainder) {
    std::vector<std::int64_t> reads;  // x position minus j
    for (std::int64_t tap = 0; tap < w.kernel[a]; ++tap) {
      const auto distance = remainder + w.pad_begin[a] - tap * w.dilation[a];
      if (distance % w.stride[a] != 0) continue;
      taps.push_back(tap);
      reads.push_back(distance / w.stride[a]);
    }
    axis = {.in = w.out[a], .out = ceil_div(w.in[a] - remainder, w.stride[a])};
    axis.taps = std::max<std::int64_t>(1, std::ssize(taps));
    if (!taps.empty()) axis.first = reads[0];
    axis.step = taps.size() > 1 ? reads[1] - reads[0] : 0;
  }
};

// A stream that reads zeros only, and its one tap without weights.
StreamAxis nowhere(std::int64_t outputs) {
  return {.in = 1, .out = outputs, .stride = 0, .first = 1, .step = 0};
}
constexpr std::int64_t kNoTap = -1;

// The geometry is that of the convolution with this operator as input gradient: its y is our x.
class ConvTransposePlan {
 public:
  ConvTransposePlan(const KernelQuery& query, const PlanTarget& target,
                    const ConvGeometry& geometry, const std::string& activation)
      : query_(query),
        target_(target),
        g_(geometry),
        relu_(activation == "relu"),
        padded_(padded_channels(g_.group_out(), target.group)) {}

  StreamPlan make() {
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      add_image(group);
      if (g_.window.makes_tiles()) {
        add_tiles(group);
        continue;
      }
      const auto& w = g_.window;
      for (std::int64_t row = 0; row < std::min(w.stride[0], w.in[0]); ++row) {
        for (std::int64_t column = 0; column < std::min(w.stride[1], w.in[1]); ++column) {
          add_phase(group, row, column);
        }
      }
    }
    return std::move(plan_);
  }

 private:
  void add_image(std::int64_t group) {
    plan_.images.push_back({.input = 0,
                            .offset = group * g_.group_out() * g_.out_plane(),
                            .image_stride = query_.inputs[0].outer_stride,
                            .channel_stride = g_.out_plane(),
                            .images = g_.batch,
                            .positions = g_.out_plane(),
                            .channels = g_.group_out(),
                            .padded = padded_});
  }

  MatrixPacking weights(std::int64_t group) const {
    const auto w_stride = query_.inputs[1].outer_stride;
    return {.input = 1,
            .offset = group * g_.group_out() * w_stride,
            .channel_stride = w_stride,
            .column_stride = g_.taps(),
            .channels = g_.group_out(),
            .padded = padded_,
            .columns = g_.group_in()};
  }

  ResultUnpacking result(std::int64_t group) const {
    return {.offset = group * g_.group_in() * g_.in_plane(),
            .image_stride = query_.outputs[0].outer_stride,
            .images = g_.batch};
  }

  /// One product: `problem` with the newest image, and `repeat` columns for each channel of y.
  void add_job(std::int64_t group, StreamProblem problem, MatrixPacking matrix,
               ResultUnpacking unpacking, std::int64_t repeat) {
    problem.images = g_.batch;
    problem.group = target_.group;
    problem.columns = matrix.columns;
    StreamJob job = {.problem = flattened(problem),
                     .image = plan_.images.size() - 1,
                     .matrix = plan_.matrices.size(),
                     .result = plan_.results.size(),
                     .relu = relu_};
    add_registers(query_,
                  {.offset = group * g_.group_in(), .columns = matrix.columns, .repeat = repeat},
                  job, plan_);
    plan_.matrices.push_back(std::move(matrix));
    plan_.results.push_back(std::move(unpacking));
    plan_.jobs.push_back(job);
  }

  void add_tiles(std::int64_t group) {
    const auto& w = g_.window;
    auto matrix = weights(group);
    matrix.column_stride = 1;
    matrix.columns *= g_.taps();
    auto unpacking = result(group);
    unpacking.rows = w.out[0];
    unpacking.positions = unpacking.stored_positions = w.out[1];
    unpacking.row_stride = w.kernel[0] * w.in[1];
    unpacking.position_stride = w.kernel[1];
    for (std::int64_t q = 0; q < matrix.columns; ++q) {
      const auto tap = q % g_.taps();
      unpacking.column_offsets.push_back(q / g_.taps() * g_.in_plane() +
                                         tap / w.kernel[1] * w.in[1] + tap % w.kernel[1]);
    }
    const StreamProblem problem = {.y = {.in = w.out[0], .out = w.out[0]},
                                   .x = {.in = w.out[1], .out = w.out[1]},
                                   .channels = padded_};
    add_job(group, problem, std::move(matrix), std::move(unpacking), g_.taps());
  }

  void add_phase(std::int64_t group, std::int64_t row, std::int64_t column) {
    const auto& w = g_.window;
    const PhaseAxis y(w, 0, row);
    const PhaseAxis x(w, 1, column);
    auto matrix = weights(group);
    matrix.taps.clear();
    for (const auto ky : y.taps) {
      for (const auto kx : x.taps) matrix.taps.push_back(ky * w.kernel[1] + kx);
    }
    StreamProblem problem = {.y = y.axis, .x = x.axis, .channels = padded_};
    if (matrix.taps.empty()) {
      problem.y = nowhere(y.axis.out);
      problem.x = nowhere(x.axis.out);
      problem.channels = matrix.padded = target_.group;
      matrix.taps = {kNoTap};
    }
    auto unpacking = result(group);
    unpacking.offset += row * w.in[1] + column;
    unpacking.rows = y.axis.out;
    unpacking.positions = unpacking.stored_positions = x.axis.out;
    unpacking.row_stride = w.stride[0] * w.in[1];
    unpacking.position_stride = w.stride[1];
    for (std::int64_t q = 0; q < matrix.columns; ++q) {
      unpacking.column_offsets.push_back(q * g_.in_plane());
    }
    add_job(group, problem, std::move(matrix), std::move(unpacking), 1);
  }

  const KernelQuery& query_;
  PlanTarget target_;
  ConvGeometry g_;
  bool relu_;
  std::int64_t padded_;
  StreamPlan plan_;
};

std::string activation_of(const ConvTranspose&) { return ""; }
std::string activation_of(const QuantizedConvTranspose& op) { return op.activation; }

template <class Op>
struct ConvTransposePlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_contract(query); }
  static StreamPlan plan(const KernelQuery& query, const PlanTarget& target) {
    const auto& op = query.as<Op>();
    const auto g = op.geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
    return ConvTransposePlan(query, target, g, activation_of(op)).make();
  }
};

}  // namespace

void add_conv_transpose_kernels(KernelLists& lists) {
  lists.bf16.push_back(stream_entry<ConvTransposePlanner<ConvTranspose>>(ConvTranspose::kName));
  lists.int8.push_back(
      stream_entry<ConvTransposePlanner<QuantizedConvTranspose>>(QuantizedConvTranspose::kName));
}

}  // namespace triptych::systolic
