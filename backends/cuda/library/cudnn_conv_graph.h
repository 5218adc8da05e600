// A convolution, or one of its gradients, as cuDNN's graph of operations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/library/cudnn_descriptor.h"
#include "core/ops/conv_geometry.h"

namespace triptych::cuda::cudnn {

enum class Pass { Forward, DataGradient, WeightGradient };
/// Images as [N, C, H, W], or with the channels innermost, in float32 or all in bfloat16.
enum class Layout { Nchw, Nhwc, NhwcBf16 };

/// Names of the graph's tensors. A gradient's output is the tensor that it is the gradient of.
enum TensorId : std::int64_t { kX = 1, kW = 2, kY = 3, kBias = 4 };

/// y = w * x and its gradients, with sums in float32. With `bias` (forward only) y = w * x + bias.
struct ConvProblem {
  Pass pass = Pass::Forward;
  ConvGeometry geometry;
  Layout layout = Layout::Nchw;
  bool bias = false;
  std::int64_t x_image = 0, y_image = 0;  ///< elements from image to image. 0: dense
  std::int64_t x_pitch = 0, y_pitch = 0;  ///< from position to position, channels innermost. 0: C
  std::int64_t x_alignment = 16, w_alignment = 16, y_alignment = 16;  ///< bytes
};

/// "forward 8x3x64x64 * 16x3x3x3, ...": one text for each problem that differs.
std::string to_string(const ConvProblem& problem);

/// The descriptor of the graph, and those it is made of.
struct OperationGraph {
  Descriptor graph{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  std::vector<Descriptor> parts;
};

/// Throws UnsupportedError or DeviceError as cuDNN's calls do.
OperationGraph make_graph(const ConvProblem& problem);

}  // namespace triptych::cuda::cudnn
