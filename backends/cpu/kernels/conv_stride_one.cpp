// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/conv_stride_one.h"

#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"

namespace triptych::cpu {

ConvGeometry geometry_of_either(const KernelQuery& query) {
  const auto &x = query.inputs[0].spec.shape, &w = query.inputs[1].spec.shape;
  const auto* conv = op_cast<Conv>(query.op);
  return conv != nullptr ? conv->geometry(x, w) : query.as<ConvTranspose>().geometry(x, w);
}

StrideOneConv stride_one_conv(const KernelQuery& query) {
  const auto g = geometry_of_either(query);
  const auto& w = g.window;
  const auto w_stride = query.inputs[1].outer_stride;
  StrideOneConv conv = {.batch = g.batch,
                        .kernel = {w.kernel[0], w.kernel[1]},
                        .dilation = {w.dilation[0], w.dilation[1]}};
  const bool forwards = op_cast<Conv>(query.op) != nullptr;
  conv.relu = forwards ? has_relu(query.as<Conv>()) : has_relu(query.as<ConvTranspose>());
  conv.flipped = !forwards;
  conv.in_channels = forwards ? g.in_channels : g.out_channels;
  conv.out_channels = forwards ? g.out_channels : g.in_channels;
  conv.out_stride = forwards ? w_stride : g.taps();
  conv.in_stride = forwards ? g.taps() : w_stride;
  for (int axis = 0; axis < 2; ++axis) {
    conv.in[axis] = forwards ? w.in[axis] : w.out[axis];
    conv.out[axis] = forwards ? w.out[axis] : w.in[axis];
    conv.pad[axis] = forwards ? w.pad_begin[axis] : w.extent(axis) - 1 - w.pad_begin[axis];
  }
  return conv;
}

}  // namespace triptych::cpu
