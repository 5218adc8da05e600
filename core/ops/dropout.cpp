// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include <fmt/core.h>

#include "core/ops/elementwise.h"
#include "core/ops/formula.h"

namespace triptych {

std::vector<TensorSpec> Dropout::infer(Specs inputs) const {
  require_inputs(kName, inputs, training_mode ? 2 : 1, 2);
  require_dtype(kName, inputs, 0, DType::F32);
  if (inputs.size() == 2) {
    require_dtype(kName, inputs, 1, DType::I64);
    require_shape(kName, inputs, 1, {});
  }
  if (!(ratio >= 0 && ratio < 1)) {
    throw_invalid(kName, fmt::format("ratio is {}; it must be in [0, 1)", ratio));
  }
  if (first_element < 0) {
    throw_invalid(kName, fmt::format("first_element is {}; it must be at least 0", first_element));
  }
  return {inputs[0], {DType::Bool, inputs[0].shape}};
}

std::vector<ValueId> Dropout::gradient(const GradientContext& context) const {
  std::vector<ValueId> gradients(context.inputs.size());
  const auto dy = context.output_gradients[0];
  if (!context.wanted[0] || !dy.valid()) return gradients;
  const Formula f(context.emitter);
  gradients[0] = dy;
  if (training_mode) {
    const auto kept = f.cast(context.outputs[1], DType::F32);
    gradients[0] = f.mul(f.mul(dy, kept), 1 / (1 - double{ratio}));
  }
  return gradients;
}

void Dropout::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto& x = inputs[0].values;
  const auto step = training_mode ? static_cast<std::uint64_t>(to_int64(inputs[1].values[0])) : 0;
  const auto numbers = static_cast<std::uint64_t>(stream) + (step << 32);
  const auto first = static_cast<std::uint64_t>(first_element);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool keep = !training_mode ||
                      random_uniform(static_cast<std::uint64_t>(seed), numbers, first + i) >= ratio;
    const double scale = training_mode ? 1 / (1 - double{ratio}) : 1;
    outputs[0].values[i] = keep ? x[i] * scale : 0;
    outputs[1].values[i] = keep;
  }
}

void add_dropout_ops(OpList& list) { list.push_back(make_op(Dropout{})); }

}  // namespace triptych
