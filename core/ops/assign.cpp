// SPDX-License-Identifier: Apache-2.0
#include "core/ops/assign.h"

namespace triptych {

std::vector<TensorSpec> Assign::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_dtype(kName, inputs, 1, inputs[0].dtype);
  require_shape(kName, inputs, 1, inputs[0].shape);
  return {inputs[0]};
}

void Assign::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  outputs[0].values = inputs[1].values;
}

void add_assign_ops(OpList& list) { list.push_back(make_op(Assign{})); }

}  // namespace triptych
