// The node of a convolution, of its transpose or of its weight gradient as cuDNN's problem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/library/cudnn_conv_graph.h"
#include "core/runtime/kernel.h"

namespace triptych::cuda::cudnn {

/// Whether cuDNN can serve this node, with operands in their own layout (Nchw, float32 only), or
/// copied, rounded by the contract, with the channels innermost (Nhwc).
Verdict accepts_conv(const KernelQuery& query, Layout layout);

/// The problem of a node that is accepted. A forward convolution's bias is cuDNN's in Nchw. It is
/// left to the caller in Nhwc, before a ReLU, and of a data gradient. So is the ReLU: cuDNN's turns
/// NaN into 0.
ConvProblem conv_problem(const KernelQuery& query, Layout layout);

/// Which tensors of the problem the node's first two inputs and its output are.
struct ConvTensors {
  TensorId inputs[2] = {kX, kW};
  TensorId output = kY;
};
ConvTensors conv_tensors(Pass pass);

}  // namespace triptych::cuda::cudnn
