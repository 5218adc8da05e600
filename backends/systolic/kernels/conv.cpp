// Convolution: the patches of x stream past the weights [(kernel row, kernel column, channel),
// output channel], with one problem per group.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv.h"

#include <numeric>

#include "backends/systolic/kernels/conv_stream.h"
#include "backends/systolic/kernels/kernels.h"
#include "backends/systolic/kernels/stream_kernel.h"
#include "core/ops/quantized_conv.h"

namespace triptych::systolic {
namespace {

template <class Op>
struct ConvPlanner {
  static Verdict accepts(const KernelQuery& query) { return accepts_contract(query); }

  static StreamPlan plan(const KernelQuery& query, const PlanTarget& target) {
    const auto& op = query.as<Op>();
    const auto g = op.geometry(query.inputs[0].spec.shape, query.inputs[1].spec.shape);
    StreamPlan plan;
    for (std::int64_t i = 0; i < g.groups; ++i) {
      auto stream = patch_stream(g, query.inputs[0].outer_stride, target.group, i);
      StreamJob job = {.problem = stream.problem,
                       .image = plan.images.size(),
                       .matrix = plan.matrices.size(),
                       .result = plan.results.size(),
                       .relu = op.activation == "relu"};
      plan.images.push_back(std::move(stream.image));
      plan.matrices.push_back(weights_of(query.inputs[1].outer_stride, g, stream.tap_rows, i));
      add_registers(query, {.offset = i * g.group_out(), .columns = g.group_out()}, job, plan);
      plan.results.push_back(result_of(query.outputs[0].outer_stride, g, i));
      plan.jobs.push_back(job);
    }
    return plan;
  }

  static MatrixPacking weights_of(std::int64_t w_stride, const ConvGeometry& g, std::int64_t padded,
                                  std::int64_t group) {
    MatrixPacking matrix = {.input = 1,
                            .offset = group * g.group_out() * w_stride,
                            .channel_stride = g.taps(),
                            .column_stride = w_stride,
                            .channels = g.group_in(),
                            .padded = padded,
                            .columns = g.group_out()};
    matrix.taps.resize(static_cast<std::size_t>(g.taps()));
    std::iota(matrix.taps.begin(), matrix.taps.end(), 0);
    return matrix;
  }

  static ResultUnpacking result_of(std::int64_t y_stride, const ConvGeometry& g,
                                   std::int64_t group) {
    ResultUnpacking result = {.offset = group * g.group_out() * g.out_plane(),
                              .image_stride = y_stride,
                              .images = g.batch,
                              .positions = g.out_plane(),
                              .stored_positions = g.out_plane()};
    for (std::int64_t q = 0; q < g.group_out(); ++q) {
      result.column_offsets.push_back(q * g.out_plane());
    }
    return result;
  }
};

}  // namespace

void add_conv_kernels(KernelLists& lists) {
  lists.bf16.push_back(stream_entry<ConvPlanner<Conv>>(Conv::kName));
  lists.int8.push_back(stream_entry<ConvPlanner<QuantizedConv>>(QuantizedConv::kName));
}

}  // namespace triptych::systolic
