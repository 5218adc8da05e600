// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/ops/elementwise.h"
#include "core/ops/formula.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

/// An operand as a stack of matrices: a rank-1 `a` is one row, a rank-1 `b` one column.
struct Lifted {
  Dims batch;
  std::int64_t rows = 1, columns = 1;  ///< after the transpose

  Shape stored(bool transposed) const {
    Dims dims = batch;
    dims.push_back(transposed ? columns : rows);
    dims.push_back(transposed ? rows : columns);
    return Shape(std::move(dims));
  }
};

Lifted lift(const Shape& shape, bool is_a, bool transposed) {
  if (shape.rank() == 0 || shape.elements() == 0) {
    throw_invalid(MatMul::kName, fmt::format("{} is {}; it must be a vector or matrices, not empty",
                                             is_a ? "a" : "b", to_string(shape)));
  }
  if (shape.rank() == 1) {
    if (transposed) {
      throw_invalid(MatMul::kName, fmt::format("transpose_{} needs rank 2 or more, got {}",
                                               is_a ? "a" : "b", to_string(shape)));
    }
    return is_a ? Lifted{{}, 1, shape[0]} : Lifted{{}, shape[0], 1};
  }
  const auto first = shape.dim(-2);
  const auto second = shape.dim(-1);
  return {{shape.dims().begin(), shape.dims().end() - 2},
          transposed ? second : first,
          transposed ? first : second};
}

Shape batch_shape(const Lifted& a, const Lifted& b) {
  return name_errors(MatMul::kName,
                     [&] { return broadcast_shapes(Shape(a.batch), Shape(b.batch)); });
}

/// Where in an operand each batch entry of y starts, in matrices.
std::vector<std::int64_t> batch_offsets(const Lifted& operand, const Shape& batch) {
  const auto strides = broadcast_strides(Shape(operand.batch), batch);
  const auto matrix = operand.rows * operand.columns;
  std::vector<std::int64_t> offsets;
  for_each_index(
      batch, [&](const Dims& index) { offsets.push_back(flat_index(index, strides) * matrix); });
  return offsets;
}

ValueId product(OpEmitter& emitter, ValueId a, bool transpose_a, ValueId b, bool transpose_b) {
  MatMul op;
  op.transpose_a = transpose_a;
  op.transpose_b = transpose_b;
  return emitter.emit_one(make_op(op), {a, b});
}

MatMul product_of(const Gemm& gemm) {
  MatMul op;
  op.transpose_a = gemm.transA;
  op.transpose_b = gemm.transB;
  return op;
}

}  // namespace

MatMulGeometry MatMulGeometry::of(const MatMul& op, const TensorSpec& a, const TensorSpec& b) {
  const auto lifted_a = lift(a.shape, true, op.transpose_a);
  const auto lifted_b = lift(b.shape, false, op.transpose_b);
  const auto batch = batch_shape(lifted_a, lifted_b);
  return {.m = lifted_a.rows,
          .n = lifted_b.columns,
          .k = lifted_a.columns,
          .batch_a = batch_offsets(lifted_a, batch),
          .batch_b = batch_offsets(lifted_b, batch)};
}

MatMulGeometry MatMulGeometry::merged(const MatMul& op, const TensorSpec& a, const TensorSpec& b) {
  auto g = of(op, a, b);
  const auto batch = static_cast<std::int64_t>(g.batch_a.size());
  // Where all entries share b, those of a lie one behind the other.
  const bool shares_b = std::ranges::count(g.batch_b, 0) == batch;
  if (op.transpose_a || !shares_b) return g;
  return {.m = batch * g.m, .n = g.n, .k = g.k, .batch_a = {0}, .batch_b = {0}};
}

std::vector<TensorSpec> MatMul::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 2);
  require_dtype(kName, inputs, 0, DType::F32);
  require_dtype(kName, inputs, 1, DType::F32);
  const auto a = lift(inputs[0].shape, true, transpose_a);
  const auto b = lift(inputs[1].shape, false, transpose_b);
  if (a.columns != b.rows) {
    throw_invalid(
        kName, fmt::format("a {}{} has {} columns, b {}{} has {} rows", to_string(inputs[0].shape),
                           transpose_a ? " transposed" : "", a.columns, to_string(inputs[1].shape),
                           transpose_b ? " transposed" : "", b.rows));
  }
  Dims dims = batch_shape(a, b).dims();
  if (inputs[0].shape.rank() > 1) dims.push_back(a.rows);
  if (inputs[1].shape.rank() > 1) dims.push_back(b.columns);
  return {{DType::F32, Shape(std::move(dims))}};
}

std::vector<ValueId> MatMul::gradient(const GradientContext& context) const {
  auto& emitter = context.emitter;
  const Formula formula(emitter);
  const auto shape_a = formula.shape(context.inputs[0]);
  const auto shape_b = formula.shape(context.inputs[1]);
  const auto lifted_a = lift(shape_a, true, transpose_a);
  const auto lifted_b = lift(shape_b, false, transpose_b);
  const auto stored_a = lifted_a.stored(transpose_a);
  const auto stored_b = lifted_b.stored(transpose_b);
  const auto a = formula.reshape(context.inputs[0], stored_a);
  const auto b = formula.reshape(context.inputs[1], stored_b);
  const Lifted lifted_y{batch_shape(lifted_a, lifted_b).dims(), lifted_a.rows, lifted_b.columns};
  const auto dy = formula.reshape(context.output_gradients[0], lifted_y.stored(false));

  std::vector<ValueId> gradients(2);
  if (context.wanted[0]) {
    const auto da = transpose_a ? product(emitter, b, transpose_b, dy, true)
                                : product(emitter, dy, false, b, !transpose_b);
    gradients[0] = formula.reshape(reduce_to_shape(emitter, da, stored_a), shape_a);
  }
  if (context.wanted[1]) {
    const auto db = transpose_b ? product(emitter, dy, true, a, transpose_a)
                                : product(emitter, a, !transpose_a, dy, false);
    gradients[1] = formula.reshape(reduce_to_shape(emitter, db, stored_b), shape_b);
  }
  return gradients;
}

double MatMul::flops(Specs inputs, Specs outputs) const {
  const auto k = lift(inputs[0].shape, true, transpose_a).columns;
  return 2 * static_cast<double>(outputs[0].shape.elements()) * static_cast<double>(k);
}

std::vector<Sharding> MatMul::shardings(Specs inputs, Specs, std::int64_t) const {
  const auto a = inputs[0].shape.rank();
  if (a < 2 || inputs[1].shape.rank() != 2) return {};
  return product_shardings({.a_rows = transpose_a ? a - 1 : a - 2,
                            .a_sum = transpose_a ? a - 2 : a - 1,
                            .b_columns = transpose_b ? 0 : 1,
                            .b_sum = transpose_b ? 1 : 0,
                            .y_rows = a - 2,
                            .y_columns = a - 1});
}

void MatMul::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto g = MatMulGeometry::of(*this, inputs[0].spec, inputs[1].spec);
  double* y = outputs[0].values.data();
  for (std::size_t entry = 0; entry < g.batch_a.size(); ++entry) {
    const double* a = inputs[0].values.data() + g.batch_a[entry];
    const double* b = inputs[1].values.data() + g.batch_b[entry];
    for (std::int64_t m = 0; m < g.m; ++m) {
      for (std::int64_t n = 0; n < g.n; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < g.k; ++k) {
          sum += a[transpose_a ? k * g.m + m : m * g.k + k] *
                 b[transpose_b ? n * g.k + k : k * g.n + n];
        }
        *y++ = sum;
      }
    }
  }
}

ErrorBound MatMul::error_bound(Specs inputs) const {
  return {.terms = static_cast<double>(lift(inputs[0].shape, true, transpose_a).columns)};
}

std::vector<TensorSpec> Gemm::infer(Specs inputs) const {
  require_inputs(kName, inputs, 2, 3);
  require_rank(kName, inputs, 0, 2);
  require_rank(kName, inputs, 1, 2);
  auto y = product_of(*this).infer(inputs.first(2));
  if (inputs.size() == 3) {
    require_dtype(kName, inputs, 2, DType::F32);
    const auto both =
        name_errors(kName, [&] { return broadcast_shapes(inputs[2].shape, y[0].shape); });
    if (both != y[0].shape) {
      throw_invalid(kName, fmt::format("c is {}; it must broadcast to {}",
                                       to_string(inputs[2].shape), to_string(y[0].shape)));
    }
  }
  return y;
}

std::vector<ValueId> Gemm::expand(OpEmitter& emitter, Values inputs) const {
  const Formula formula(emitter);
  const auto scaled = [&](ValueId value, float factor) {
    return factor == 1 ? value : formula.mul(value, double{factor});
  };
  auto y = emitter.emit_one(make_op(product_of(*this)), {inputs[0], inputs[1]});
  y = scaled(y, alpha);
  if (inputs.size() == 3) y = formula.add(y, scaled(inputs[2], beta));
  return {y};
}

void Gemm::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  product_of(*this).reference(inputs, outputs);
  auto& y = outputs[0];
  for (auto& value : y.values) value *= alpha;
  if (inputs.size() < 3) return;
  const auto strides = broadcast_strides(inputs[2].spec.shape, y.spec.shape);
  std::size_t i = 0;
  for_each_index(y.spec.shape, [&](const Dims& index) {
    const auto c = static_cast<std::size_t>(flat_index(index, strides));
    y.values[i++] += double{beta} * inputs[2].values[c];
  });
}

ErrorBound Gemm::error_bound(Specs inputs) const {
  auto bound = product_of(*this).error_bound(inputs.first(2));
  bound.terms += 2;
  // A negative factor makes the reference of absolute inputs cancel. For inputs up to 1 no term is
  // larger than its factor.
  if (alpha < 0 || beta < 0) {
    bound.absolute = 0x1p-23 * bound.terms * bound.terms * (std::fabs(alpha) + std::fabs(beta));
  }
  return bound;
}

void add_matmul_ops(OpList& list) {
  list.push_back(make_op(MatMul{}));
  list.push_back(make_op(Gemm{}));
}

}  // namespace triptych
