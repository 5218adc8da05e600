// Reductions, and softmax, which reduces along an axis.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include <limits>

#include "core/onnx/node_import.h"
#include "core/onnx/translations/arithmetic.h"
#include "core/ops/softmax.h"

namespace triptych::onnx {
namespace {

/// Functions of the elements before they are summed, and of the sum.
enum class Around { Nothing, Squares, SquaresRoot, Absolutes, Logarithm, LogarithmOfExp };

struct Reduction {
  std::vector<std::int64_t> axes;
  bool keepdims = true;
  bool nothing = false;  ///< no axes, which means none here

  Reduction(NodeImport& n, std::int64_t axes_are_input_since) {
    if (auto given = n.input_or_attribute(1, "axes", axes_are_input_since))
      axes = std::move(*given);
    keepdims = n.flag("keepdims", true);
    const bool noop = n.opset >= axes_are_input_since && n.flag("noop_with_empty_axes");
    nothing = noop && axes.empty();
    for (auto& axis : axes) axis = normalize_axis(axis, n.rank(0));
  }
  ValueId apply(const NodeImport& n, ReduceKind kind, ValueId x) const {
    if (nothing) return x;
    const TensorSpec spec = n.graph.spec(x);
    if (spec.shape.elements() > 0 || kind == ReduceKind::Sum) {
      return n.apply(make_op(Reduce(kind, axes, keepdims)), {x});
    }
    // ReduceSum has the shape of all reductions. The largest of nothing is the smallest number.
    constexpr double infinity = std::numeric_limits<double>::infinity();
    n.refuse_unless(kind != ReduceKind::Mean && is_floating(spec.dtype), "a reduction of nothing");
    const auto shape = n.graph.spec(n.f.sum(x, axes, keepdims)).shape;
    return n.filled({spec.dtype, shape}, kind == ReduceKind::Max ? -infinity : infinity);
  }
};

/// x in a dtype that reductions have.
ValueId reducible(const NodeImport& n, bool mean) {
  const auto dtype = n.dtype(0);
  if (dtype == DType::I8 || dtype == DType::U8) return n.cast(n.in(0), DType::I32);
  const bool whole = dtype == DType::I32 || dtype == DType::I64;
  return whole && !mean ? n.in(0) : n.f32(0);
}

template <ReduceKind kind>
std::vector<ValueId> reduce(NodeImport& n) {
  constexpr std::int64_t since = kind == ReduceKind::Sum ? 13 : 18;
  const Reduction reduction(n, since);
  return {n.like(0, reduction.apply(n, kind, reducible(n, kind == ReduceKind::Mean)))};
}

/// log(sum of e^x), with the largest x taken out of the sum unless it is infinite: infinity less
/// itself would be NaN.
ValueId log_sum_exp(const NodeImport& n, const Reduction& reduction, ValueId x) {
  auto kept = reduction;
  kept.keepdims = true;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto largest = kept.apply(n, ReduceKind::Max, x);
  const auto is_infinite =
      n.f.apply(BinaryKind::Equal, n.f.apply(UnaryKind::Abs, largest), infinity);
  const auto most = n.f.select(is_infinite, 0.0, largest);
  const auto sum = reduction.apply(n, ReduceKind::Sum, n.f.apply(UnaryKind::Exp, n.f.sub(x, most)));
  const auto shape = n.graph.spec(sum).shape;
  return n.f.add(n.f.apply(UnaryKind::Log, sum), n.f.reshape(most, shape));
}

template <Around around>
std::vector<ValueId> reduce_around(NodeImport& n) {
  const Reduction reduction(n, 18);
  auto x = reducible(n, around == Around::Logarithm || around == Around::LogarithmOfExp);
  if (around == Around::LogarithmOfExp) {
    n.refuse_unless(!reduction.nothing, "attribute noop_with_empty_axes");
    return {n.like(0, log_sum_exp(n, reduction, x))};
  }
  if (around == Around::Squares || around == Around::SquaresRoot) x = n.f.mul(x, x);
  if (around == Around::Absolutes) x = n.f.apply(UnaryKind::Abs, x);
  auto y = reduction.apply(n, ReduceKind::Sum, x);
  if (around == Around::SquaresRoot) {
    y = norm_of(n.f, n.cast(y, DType::F32));
  }
  if (around == Around::Logarithm) y = n.f.apply(UnaryKind::Log, y);
  return {n.like(0, y)};
}

ArgMax arg_max_of(NodeImport& n) {
  ArgMax op;
  op.axis = n.integer("axis", 0);
  op.keepdims = n.flag("keepdims", true);
  op.select_last_index = n.flag("select_last_index");
  return op;
}

std::vector<ValueId> arg_max(NodeImport& n) { return {n.apply(make_op(arg_max_of(n)), {n.in(0)})}; }

/// The largest of -x. In whole numbers of -1 - x, which does not overflow.
std::vector<ValueId> arg_min(NodeImport& n) {
  const auto op = arg_max_of(n);
  if (is_floating(n.dtype(0))) {
    return {n.apply(make_op(op), {n.f.apply(UnaryKind::Neg, n.in(0))})};
  }
  const auto wide = n.dtype(0) == DType::I64 ? DType::I64 : DType::I32;
  return {n.apply(make_op(op), {n.f.sub(-1.0, n.cast(n.in(0), wide))})};
}

/// Before operator set 13 the elements from `axis` on are one row.
template <class Op>
std::vector<ValueId> softmax(NodeImport& n) {
  Op op;
  op.axis = n.integer("axis", n.opset < 13 ? 1 : -1);
  const auto x = n.f32(0);
  if (n.opset >= 13) return {n.like(0, n.apply(make_op(op), {x}))};
  const auto shape = n.shape(0);
  // 1 is ONNX's own default, also where the input has no such axis.
  const auto axis = op.axis == shape.rank() ? op.axis : normalize_axis(op.axis, shape.rank());
  op.axis = 1;
  const auto rows =
      n.reshape(x, {shape.elements_between(0, axis), shape.elements_between(axis, shape.rank())});
  return {n.like(0, n.f.reshape(n.apply(make_op(op), {rows}), shape))};
}

}  // namespace

void add_reduce_translations(TranslationList& list) {
  list.insert(list.end(), {{"ReduceSum", reduce<ReduceKind::Sum>},
                           {"ReduceMean", reduce<ReduceKind::Mean>},
                           {"ReduceMax", reduce<ReduceKind::Max>},
                           {"ReduceMin", reduce<ReduceKind::Min>},
                           {"ReduceL1", reduce_around<Around::Absolutes>},
                           {"ReduceL2", reduce_around<Around::SquaresRoot>},
                           {"ReduceSumSquare", reduce_around<Around::Squares>},
                           {"ReduceLogSum", reduce_around<Around::Logarithm>},
                           {"ReduceLogSumExp", reduce_around<Around::LogarithmOfExp>},
                           {"ArgMax", arg_max},
                           {"ArgMin", arg_min},
                           {"Softmax", softmax<Softmax>},
                           {"LogSoftmax", softmax<LogSoftmax>}});
}

}  // namespace triptych::onnx
