// SPDX-License-Identifier: Apache-2.0
#include "core/ops/expand.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/ops/formula.h"

namespace triptych {

StridedView Expand::view_of(const StridedView& x) const {
  return broadcast_view(x, broadcast_shapes(x.shape, Shape(shape)));
}

std::vector<TensorSpec> Expand::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  try {
    return {{inputs[0].dtype, view_of(dense_view(inputs[0].shape)).shape}};
  } catch (const InvalidArgument& error) {
    throw_invalid(kName, fmt::format("x {}: {}", to_string(inputs[0]), error.what()));
  }
}

std::vector<ValueId> Expand::gradient(const GradientContext& context) const {
  const Formula f(context.emitter);
  return {
      reduce_to_shape(context.emitter, context.output_gradients[0], f.shape(context.inputs[0]))};
}

void Expand::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  copy_view(view_of(dense_view(inputs[0].spec.shape)), inputs[0].values,
            dense_view(outputs[0].spec.shape), outputs[0].values);
}

void add_expand_ops(OpList& list) { list.push_back(make_op(Expand{})); }

}  // namespace triptych
