// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/cudnn_conv_graph.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"

namespace triptych::cuda::cudnn {
namespace {

/// Type of products and sums.
constexpr cudnnDataType_t kFloat = CUDNN_DATA_FLOAT;

/// Tensors between two operations of the graph. No memory holds them.
enum : std::int64_t { kSum = 5 };

struct TensorDescription {
  std::int64_t id = 0;
  std::int64_t sizes[4] = {};  ///< [N, C, H, W], for every layout
  std::int64_t image = 0;      ///< elements from image to image. 0: dense
  std::int64_t pitch = 0;      ///< elements from position to position. 0: the channels
  std::int64_t alignment = 16;
  bool is_virtual = false;
};

Descriptor make_tensor(const TensorDescription& t, Layout layout) {
  const auto [n, c, h, w] = t.sizes;
  const auto pitch = t.pitch == 0 ? c : t.pitch;
  const auto image = t.image == 0 ? pitch * h * w : t.image;
  const std::int64_t nchw[] = {image, h * w, w, 1};
  const std::int64_t nhwc[] = {image, 1, w * pitch, pitch};
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
             layout == Layout::NhwcBf16 ? CUDNN_DATA_BFLOAT16 : kFloat);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(t.sizes));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES,
             std::span<const std::int64_t>(layout == Layout::Nchw ? nchw : nhwc));
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, t.id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, t.alignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, t.is_virtual);
  tensor.finalize("describing a tensor");
  return tensor;
}

Descriptor make_convolution(const Window& window) {
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, kFloat);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                  CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window.pad_begin);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window.pad_end);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, window.dilation);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window.stride);
  convolution.finalize("describing a convolution");
  return convolution;
}

/// The names that one pass gives its operation's attributes.
struct PassNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

PassNames names_of(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Pass::DataGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Pass::WeightGradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

/// Collects the operations of a graph and keeps everything alive that they refer to.
class GraphBuilder {
 public:
  explicit GraphBuilder(Layout layout) : layout_(layout) {}

  std::size_t tensor(const TensorDescription& description) {
    return keep(make_tensor(description, layout_));
  }

  void convolve(Pass pass, const Window& window, std::size_t x, std::size_t w, std::size_t y) {
    const auto convolution = keep(make_convolution(window));
    const auto names = names_of(pass);
    Descriptor operation(names.type);
    operation.set(names.x, parts_[x]);
    operation.set(names.w, parts_[w]);
    operation.set(names.y, parts_[y]);
    operation.set(names.convolution, parts_[convolution]);
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
    add(std::move(operation));
  }

  /// y = x + b.
  void add(std::size_t x, std::size_t b, std::size_t y) {
    Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
    function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, kFloat);
    function.finalize("describing a pointwise function");
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, parts_[x]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, parts_[b]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, parts_[y]);
    keep(std::move(function));
    add(std::move(operation));
  }

  OperationGraph finish() && {
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const auto i : operations_) operations.push_back(parts_[i].get());
    OperationGraph result;
    result.graph.set_list(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                          std::span<const cudnnBackendDescriptor_t>(operations));
    result.graph.finalize("building a graph of operations");
    result.parts = std::move(parts_);
    return result;
  }

 private:
  std::size_t keep(Descriptor part) {
    parts_.push_back(std::move(part));
    return parts_.size() - 1;
  }
  void add(Descriptor operation) {
    operation.finalize("describing an operation");
    operations_.push_back(keep(std::move(operation)));
  }

  Layout layout_;
  std::vector<Descriptor> parts_;
  std::vector<std::size_t> operations_;
};

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return "forward";
    case Pass::DataGradient:
      return "data gradient";
    case Pass::WeightGradient:
      break;
  }
  return "weight gradient";
}

const char* name_of(Layout layout) {
  switch (layout) {
    case Layout::Nchw:
      return "nchw";
    case Layout::Nhwc:
      return "nhwc";
    case Layout::NhwcBf16:
      break;
  }
  return "nhwc bf16";
}

}  // namespace

void check(cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char words[512] = {};
  calls().last_error_string(words, sizeof(words));
  const auto message =
      fmt::format("cuDNN: {}: {} ({})", doing, calls().error_string(status), words);
  const int kind = static_cast<int>(status) / 1000 * 1000;
  if (kind == CUDNN_STATUS_NOT_SUPPORTED) throw UnsupportedError(message);
  throw DeviceError(message);
}

std::string to_string(const ConvProblem& problem) {
  const auto& g = problem.geometry;
  const auto& w = g.window;
  const auto pair = [](const std::int64_t(&values)[2]) {
    return fmt::format("{},{}", values[0], values[1]);
  };
  return fmt::format(
      "{} x {}x{}x{}x{} by {} pitch {} aligned {}, w {}x{}x{}x{} aligned {}, y {}x{} by {} pitch "
      "{} "
      "aligned {}, pads {};{}, strides {}, dilations {}, {}{}",
      name_of(problem.pass), g.batch, g.in_channels, w.in[0], w.in[1], problem.x_image,
      problem.x_pitch, problem.x_alignment, g.out_channels, g.group_in(), w.kernel[0], w.kernel[1],
      problem.w_alignment, w.out[0], w.out[1], problem.y_image, problem.y_pitch,
      problem.y_alignment, pair(w.pad_begin), pair(w.pad_end), pair(w.stride), pair(w.dilation),
      name_of(problem.layout), problem.bias ? ", bias" : "");
}

OperationGraph make_graph(const ConvProblem& problem) {
  const auto& g = problem.geometry;
  const auto& window = g.window;
  GraphBuilder builder(problem.layout);
  const auto x = builder.tensor({.id = kX,
                                 .sizes = {g.batch, g.in_channels, window.in[0], window.in[1]},
                                 .image = problem.x_image,
                                 .pitch = problem.x_pitch,
                                 .alignment = problem.x_alignment});
  const auto w =
      builder.tensor({.id = kW,
                      .sizes = {g.out_channels, g.group_in(), window.kernel[0], window.kernel[1]},
                      .alignment = problem.w_alignment});
  TensorDescription result = {.id = kY,
                              .sizes = {g.batch, g.out_channels, window.out[0], window.out[1]},
                              .image = problem.y_image,
                              .pitch = problem.y_pitch,
                              .alignment = problem.y_alignment};
  const auto y = builder.tensor(result);
  if (!problem.bias) {
    builder.convolve(problem.pass, window, x, w, y);
    return std::move(builder).finish();
  }
  const auto sum = builder.tensor({.id = kSum,
                                   .sizes = {g.batch, g.out_channels, window.out[0], window.out[1]},
                                   .is_virtual = true});
  builder.convolve(problem.pass, window, x, w, sum);
  const auto bias =
      builder.tensor({.id = kBias, .sizes = {1, g.out_channels, 1, 1}, .alignment = 4});
  builder.add(sum, bias, y);
  return std::move(builder).finish();
}

}  // namespace triptych::cuda::cudnn
