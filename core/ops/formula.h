// Formulas written as operators: what gradients and expansions are made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych {

/// An operand: a value, or a number that becomes a scalar constant of the other operand's dtype.
struct Operand {
  ValueId id;
  double number = 0;

  Operand(ValueId value) : id(value) {}
  Operand(double constant) : number(constant) {}
};

/// Emits one operator per call and returns its output. At least one operand must be a value.
class Formula {
 public:
  explicit Formula(OpEmitter& emitter) : emitter_(emitter) {}

  ValueId apply(UnaryKind kind, ValueId x) const;
  ValueId apply(BinaryKind kind, Operand a, Operand b) const;
  ValueId add(Operand a, Operand b) const { return apply(BinaryKind::Add, a, b); }
  ValueId sub(Operand a, Operand b) const { return apply(BinaryKind::Sub, a, b); }
  ValueId mul(Operand a, Operand b) const { return apply(BinaryKind::Mul, a, b); }
  ValueId div(Operand a, Operand b) const { return apply(BinaryKind::Div, a, b); }
  /// condition ? a : b.
  ValueId select(ValueId condition, Operand a, Operand b) const;
  /// The sum over `axes` (all when empty).
  ValueId sum(ValueId x, std::vector<std::int64_t> axes = {}, bool keepdims = true) const;
  ValueId cast(ValueId x, DType to) const;
  /// x under `shape`; x itself when it has that shape already.
  ValueId reshape(ValueId x, const Shape& shape) const;
  const Shape& shape(ValueId x) const { return emitter_.spec(x).shape; }

 private:
  /// Both operands as values.
  std::pair<ValueId, ValueId> values(Operand a, Operand b) const;

  OpEmitter& emitter_;
};

}  // namespace triptych
