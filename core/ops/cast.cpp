// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include <cmath>

#include "core/ops/elementwise.h"
#include "core/ops/formula.h"

namespace triptych {
namespace {

DType target(const Cast& op) {
  return name_errors(Cast::kName, [&] { return dtype_from_string(op.to); });
}

}  // namespace

std::vector<TensorSpec> Cast::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  return {{target(*this), inputs[0].shape}};
}

std::vector<ValueId> Cast::gradient(const GradientContext& context) const {
  const auto dy = context.output_gradients[0];
  const auto from = context.emitter.spec(context.inputs[0]).dtype;
  const bool flows = is_floating(from) && is_floating(target(*this));
  if (!flows || !context.wanted[0] || !dy.valid()) return {ValueId{}};
  return {Formula(context.emitter).cast(dy, from)};
}

void Cast::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto from = inputs[0].spec.dtype, onto = outputs[0].spec.dtype;
  const auto& x = inputs[0].values;
  auto& y = outputs[0].values;
  if (is_floating(onto)) {
    y = x;  // the error bound is one rounding
  } else if (is_floating(from) || onto == DType::Bool) {
    y = to_doubles(from_doubles(outputs[0].spec, x));
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = wrap_integer(onto, to_int64(x[i]));
    }
  }
}

ErrorBound Cast::error_bound(Specs) const { return elementwise_bound(target(*this), 1); }

void add_cast_ops(OpList& list) { list.push_back(make_op(Cast{})); }

}  // namespace triptych
