// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantized_conv.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/quantized_math.h"

namespace triptych {
namespace {

constexpr std::size_t kWithBias = 3;
constexpr std::size_t kRequantized = 5;

/// Refusals of the inputs before their shapes are looked at.
void require_operands(std::string_view op, Specs inputs, const std::string& activation) {
  require_inputs(op, inputs, 2, kRequantized);
  if (inputs.size() == 4) {
    throw_invalid(op, "got 4 inputs; multiplier (input 3) and shift (input 4) go together");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require_dtype(op, inputs, i, i < 2 ? DType::I8 : DType::I32);
  }
  if (!activation.empty() && activation != "relu") {
    throw_invalid(op,
                  fmt::format("activation is \"{}\"; it must be empty or \"relu\"", activation));
  }
}

std::vector<TensorSpec> infer_output(std::string_view op, Specs inputs, Shape y) {
  for (std::size_t i = 2; i < inputs.size(); ++i) require_shape(op, inputs, i, {y[1]});
  return {{inputs.size() == kRequantized ? DType::I8 : DType::I32, std::move(y)}};
}

/// A multiply-add counts 2. So do the bias, the multiplication and the shift 1 each.
double integer_flops(const ConvGeometry& geometry, Specs inputs, Specs outputs) {
  return 2 * geometry.macs() +
         static_cast<double>(inputs.size() - 2) * static_cast<double>(outputs[0].shape.elements());
}

/// Turns exact sums of products into the output.
void finish(std::span<const RefTensor> inputs, const std::string& activation, RefTensor& y) {
  const auto& shape = y.spec.shape;
  const auto plane = static_cast<std::size_t>(shape.elements_between(2, shape.rank()));
  const auto channels = static_cast<std::size_t>(shape[1]);
  const auto entry = [&](std::size_t input, std::size_t channel) {
    return static_cast<std::int32_t>(inputs[input].values[channel]);
  };
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const auto channel = i / plane % channels;
    auto sum = static_cast<std::int32_t>(static_cast<std::int64_t>(y.values[i]));
    if (inputs.size() >= kWithBias) sum = wrapping_add(sum, entry(2, channel));
    std::int64_t value = sum;
    if (inputs.size() == kRequantized) {
      value = requantize(sum, entry(3, channel), entry(4, channel));
    }
    if (activation == "relu") value = std::max<std::int64_t>(value, 0);
    y.values[i] = inputs.size() == kRequantized ? static_cast<double>(saturate_to_i8(value))
                                                : static_cast<double>(value);
  }
}

}  // namespace

ConvGeometry QuantizedConv::geometry(const Shape& x, const Shape& w) const {
  return conv_geometry(kName, *this, group, x, w);
}

std::vector<TensorSpec> QuantizedConv::infer(Specs inputs) const {
  require_operands(kName, inputs, activation);
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  return infer_output(kName, inputs,
                      image_shape(inputs[0].shape.rank(), g.batch, g.out_channels, g.window.out));
}

double QuantizedConv::flops(Specs inputs, Specs outputs) const {
  return integer_flops(geometry(inputs[0].shape, inputs[1].shape), inputs, outputs);
}

void QuantizedConv::reference(std::span<const RefTensor> inputs,
                              std::span<RefTensor> outputs) const {
  convolve(geometry(inputs[0].spec.shape, inputs[1].spec.shape), inputs[0].values, inputs[1].values,
           outputs[0].values);
  finish(inputs, activation, outputs[0]);
}

std::vector<TensorSpec> QuantizedConvTranspose::infer(Specs inputs) const {
  require_operands(kName, inputs, activation);
  const auto g = geometry(inputs[0].shape, inputs[1].shape);
  return infer_output(kName, inputs,
                      image_shape(inputs[0].shape.rank(), g.batch, g.in_channels, g.window.in));
}

double QuantizedConvTranspose::flops(Specs inputs, Specs outputs) const {
  return integer_flops(geometry(inputs[0].shape, inputs[1].shape), inputs, outputs);
}

void QuantizedConvTranspose::reference(std::span<const RefTensor> inputs,
                                       std::span<RefTensor> outputs) const {
  // The geometry is that of the convolution with this operator as input gradient: its y is our x.
  convolve_transposed(geometry(inputs[0].spec.shape, inputs[1].spec.shape), inputs[0].values,
                      inputs[1].values, outputs[0].values);
  finish(inputs, activation, outputs[0]);
}

void add_quantized_conv_ops(OpList& list) {
  list.push_back(make_op(QuantizedConv{}));
  list.push_back(make_op(QuantizedConvTranspose{}));
}

}  // namespace triptych
