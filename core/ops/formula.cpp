// SPDX-License-Identifier: Apache-2.0
#include "core/ops/formula.h"

#include "core/ops/cast.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "core/ops/where.h"

namespace triptych {

ValueId Formula::apply(UnaryKind kind, ValueId x) const {
  return emitter_.emit_one(make_op(Unary(kind)), {x});
}

ValueId Formula::apply(BinaryKind kind, Term a, Term b) const {
  const auto [left, right] = values(a, b);
  return emitter_.emit_one(make_op(Binary(kind)), {left, right});
}

ValueId Formula::select(ValueId condition, Term a, Term b) const {
  const auto [left, right] = values(a, b);
  return emitter_.emit_one(make_op(Where{}), {condition, left, right});
}

ValueId Formula::sum(ValueId x, std::vector<std::int64_t> axes, bool keepdims) const {
  return emitter_.emit_one(make_op(Reduce(ReduceKind::Sum, std::move(axes), keepdims)), {x});
}

ValueId Formula::cast(ValueId x, DType to) const {
  Cast op;
  op.to = to_string(to);
  return emitter_.emit_one(make_op(std::move(op)), {x});
}

ValueId Formula::reshape(ValueId x, const Shape& shape) const {
  if (emitter_.spec(x).shape == shape) return x;
  Reshape op;
  op.shape = shape.dims();
  op.allowzero = true;
  return emitter_.emit_one(make_op(std::move(op)), {x});
}

std::pair<ValueId, ValueId> Formula::values(Term a, Term b) const {
  TRIPTYCH_ASSERT(a.id.valid() || b.id.valid());
  const auto dtype = emitter_.spec(a.id.valid() ? a.id : b.id).dtype;
  const auto value = [&](const Term& operand) {
    if (operand.id.valid()) return operand.id;
    return emitter_.constant(from_doubles({dtype, {}}, {&operand.number, 1}));
  };
  return {value(a), value(b)};
}

}  // namespace triptych
