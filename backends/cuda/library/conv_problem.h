// The node of a convolution, of its transpose or of its weight gradient as cuDNN's problem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/library/cudnn_conv_graph.h"
#include "core/runtime/kernel.h"

namespace triptych::cuda::cudnn {

/// Whether cuDNN can serve this node: with operands in their own layout (Nchw, `f32` only), with
/// copies in float32 that are rounded by the contract and have the channels innermost (Nhwc), or
/// with such operands in bfloat16 (NhwcBf16, `bf16` only).
Verdict accepts_conv(const KernelQuery& query, Layout layout);

/// The problem of a node that is accepted. A forward convolution's bias is cuDNN's in Nchw. It is
/// left to the caller in other layouts, before a ReLU, and of a data gradient. So is the ReLU:
/// cuDNN's turns NaN into 0. In NhwcBf16 images that are stored channels last have their pitch. A
/// result that the caller finishes is dense.
ConvProblem conv_problem(const KernelQuery& query, Layout layout);

/// A bias that the node adds to its result, and a cut at 0.
struct Finish {
  bool bias = false, relu = false;

  bool any() const { return bias || relu; }
};
Finish finish_of(const KernelQuery& query);

/// The tensors of the problem that are the node's first two inputs and its output.
struct ConvTensors {
  TensorId inputs[2] = {kX, kW};
  TensorId output = kY;
};
ConvTensors conv_tensors(Pass pass);

}  // namespace triptych::cuda::cudnn
