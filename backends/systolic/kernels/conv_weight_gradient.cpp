// The gradient of a convolution's weights: the patches of x stream past dy transposed, so that
// positions are summed and the values (kernel row, kernel column, channel) remain. There is one
// problem per group.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/kernels/conv_stream.h"
#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/stream_kernel.h"
#include "core/ops/conv.h"

namespace triptych::systolic {
namespace {

struct ConvWeightGradientPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_contract(query); }

  static StreamPlan plan(const KernelQuery& query, const PlanTarget& target) {
    const auto g = query.as<ConvWeightGradient>().geometry(query.inputs[0].spec.shape,
                                                           query.inputs[1].spec.shape);
    StreamPlan plan;
    for (std::int64_t i = 0; i < g.groups; ++i) {
      auto stream = patch_stream(g, query.inputs[0].outer_stride, target.group, i);
      stream.problem.transpose = true;
      plan.jobs.push_back({.problem = stream.problem,
                           .image = plan.images.size(),
                           .matrix = plan.matrices.size(),
                           .result = plan.results.size()});
      plan.images.push_back(std::move(stream.image));
      plan.matrices.push_back(dy_of(query.inputs[1].outer_stride, g, i));
      plan.results.push_back(result_of(query.outputs[0].outer_stride, g, stream.tap_rows, i));
    }
    return plan;
  }

  // Its rows are positions: images take the place of taps, positions of channels.
  static MatrixPacking dy_of(std::int64_t dy_stride, const ConvGeometry& g, std::int64_t group) {
    MatrixPacking matrix = {.input = 1,
                            .offset = group * g.group_out() * g.out_plane(),
                            .channel_stride = 1,
                            .column_stride = g.out_plane(),
                            .taps = {},
                            .channels = g.out_plane(),
                            .padded = g.out_plane(),
                            .columns = g.group_out()};
    for (std::int64_t n = 0; n < g.batch; ++n) matrix.taps.push_back(n * dy_stride);
    return matrix;
  }

  static ResultUnpacking result_of(std::int64_t dw_stride, const ConvGeometry& g,
                                   std::int64_t padded, std::int64_t group) {
    ResultUnpacking result = {.offset = group * g.group_out() * dw_stride,
                              .row_stride = 1,
                              .position_stride = g.taps(),
                              .rows = g.taps(),
                              .positions = g.group_in(),
                              .stored_positions = padded};
    for (std::int64_t q = 0; q < g.group_out(); ++q) result.column_offsets.push_back(q * dw_stride);
    return result;
  }
};

}  // namespace

void add_conv_weight_gradient_kernels(KernelLists& lists) {
  lists.bf16.push_back(stream_entry<ConvWeightGradientPlanner>(ConvWeightGradient::kName));
}

}  // namespace triptych::systolic
