// SPDX-License-Identifier: Apache-2.0
#include "core/ops/where.h"

#include "core/ops/elementwise.h"
#include "core/ops/formula.h"

namespace triptych {

std::vector<TensorSpec> Where::infer(Specs inputs) const {
  require_inputs(kName, inputs, 3, 3);
  require_dtype(kName, inputs, 0, DType::Bool);
  require_same_dtype(kName, inputs, 1, 2);
  auto shape = name_errors(kName, [&] {
    return broadcast_shapes(inputs[0].shape, broadcast_shapes(inputs[1].shape, inputs[2].shape));
  });
  return {{inputs[1].dtype, std::move(shape)}};
}

std::vector<ValueId> Where::gradient(const GradientContext& context) const {
  std::vector<ValueId> gradients(3);
  const auto condition = context.inputs[0], dy = context.output_gradients[0];
  if (!dy.valid()) return gradients;
  const Formula f(context.emitter);
  for (const std::size_t i : {1, 2}) {
    if (!context.wanted[i]) continue;
    const auto chosen = i == 1 ? f.select(condition, dy, 0.0) : f.select(condition, 0.0, dy);
    gradients[i] = reduce_to_shape(context.emitter, chosen, f.shape(context.inputs[i]));
  }
  return gradients;
}

void Where::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto& shape = outputs[0].spec.shape;
  Dims strides[3];
  for (std::size_t i = 0; i < 3; ++i) {
    strides[i] = broadcast_strides(inputs[i].spec.shape, shape);
  }
  std::size_t n = 0;
  for_each_index(shape, [&](const Dims& index) {
    const auto read = [&](std::size_t i) {
      return inputs[i].values[static_cast<std::size_t>(flat_index(index, strides[i]))];
    };
    outputs[0].values[n++] = read(0) != 0 ? read(1) : read(2);
  });
}

void add_where_ops(OpList& list) { list.push_back(make_op(Where{})); }

}  // namespace triptych
