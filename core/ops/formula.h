// Formulas written as operators, for gradients and expansions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych {

/// A term: a value, or a number that becomes a scalar constant of the other term's dtype.
struct Term {
  ValueId id;
  double number = 0;

  // Implicit, so that formulas read as formulas: f.mul(x, 0.5).
  Term(ValueId value) : id(value) {}           // NOLINT(google-explicit-constructor)
  Term(double constant) : number(constant) {}  // NOLINT(google-explicit-constructor)
};

/// Emits one operator per call and returns its output. At least one term must be a value.
class Formula {
 public:
  explicit Formula(OpEmitter& emitter) : emitter_(emitter) {}

  ValueId apply(UnaryKind kind, ValueId x) const;
  ValueId apply(BinaryKind kind, Term a, Term b) const;
  ValueId add(Term a, Term b) const { return apply(BinaryKind::Add, a, b); }
  ValueId sub(Term a, Term b) const { return apply(BinaryKind::Sub, a, b); }
  ValueId mul(Term a, Term b) const { return apply(BinaryKind::Mul, a, b); }
  ValueId div(Term a, Term b) const { return apply(BinaryKind::Div, a, b); }
  /// condition ? a : b.
  ValueId select(ValueId condition, Term a, Term b) const;
  /// The sum over `axes` (all when empty).
  ValueId sum(ValueId x, std::vector<std::int64_t> axes = {}, bool keepdims = true) const;
  ValueId cast(ValueId x, DType to) const;
  /// x under `shape`. x itself when it has that shape already.
  ValueId reshape(ValueId x, const Shape& shape) const;
  /// A copy: the next operator may move the graph's specs.
  Shape shape(ValueId x) const { return emitter_.spec(x).shape; }

 private:
  /// Both terms as values.
  std::pair<ValueId, ValueId> values(Term a, Term b) const;

  OpEmitter& emitter_;
};

}  // namespace triptych
