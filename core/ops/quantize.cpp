// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize.h"

#include "core/base/quantized_math.h"
#include "core/ops/axes.h"
#include "core/ops/elementwise.h"

namespace triptych {
namespace {

constexpr DType kIntegers[] = {DType::I8, DType::I32};

}  // namespace

std::vector<TensorSpec> QuantizeLinear::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  for (std::size_t i = 0; i < 2; ++i) require_dtype(kName, inputs, i, DType::F32);
  require_shape(kName, inputs, 1, {});
  return {{DType::I8, inputs[0].shape}};
}

double QuantizeLinear::flops(Specs, Specs outputs) const {
  return 2 * static_cast<double>(outputs[0].shape.elements());
}

void QuantizeLinear::reference(std::span<const RefTensor> inputs,
                               std::span<RefTensor> outputs) const {
  const auto scale = static_cast<float>(inputs[1].values[0]);
  const auto& x = inputs[0].values;
  for (std::size_t i = 0; i < x.size(); ++i) {
    outputs[0].values[i] = quantize_to_i8(static_cast<float>(x[i]), scale);
  }
}

std::vector<TensorSpec> DequantizeLinear::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_dtype_among(kName, inputs, 0, kIntegers);
  require_dtype(kName, inputs, 1, DType::F32);
  const auto& x = inputs[0].shape;
  if (inputs[1].shape.rank() != 0) {
    require_shape(kName, inputs, 1, {x[resolve_axis(kName, axis, x.rank())]});
  }
  return {{DType::F32, x}};
}

Dims DequantizeLinear::scale_strides(const Shape& x, const StridedView& scale) const {
  Dims strides(static_cast<std::size_t>(x.rank()), 0);
  if (scale.shape.rank() != 0) {
    strides[static_cast<std::size_t>(resolve_axis(kName, axis, x.rank()))] = scale.strides[0];
  }
  return strides;
}

double DequantizeLinear::flops(Specs, Specs outputs) const {
  return static_cast<double>(outputs[0].shape.elements());
}

void DequantizeLinear::reference(std::span<const RefTensor> inputs,
                                 std::span<RefTensor> outputs) const {
  const auto& shape = inputs[0].spec.shape;
  const auto& scales = inputs[1].values;
  std::size_t inner = 1;
  if (inputs[1].spec.shape.rank() != 0) {
    const auto channel_axis = resolve_axis(kName, axis, shape.rank());
    inner = static_cast<std::size_t>(shape.elements_between(channel_axis + 1, shape.rank()));
  }
  const auto& x = inputs[0].values;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto scale = static_cast<float>(scales[i / inner % scales.size()]);
    outputs[0].values[i] = static_cast<float>(x[i]) * scale;
  }
}

void add_quantize_ops(OpList& list) {
  list.push_back(make_op(QuantizeLinear{}));
  list.push_back(make_op(DequantizeLinear{}));
}

}  // namespace triptych
