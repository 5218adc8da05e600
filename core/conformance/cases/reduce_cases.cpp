// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include <fmt/format.h>

#include <limits>

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

OpPtr reduce(ReduceKind kind, std::vector<std::int64_t> axes, bool keepdims = true) {
  return make_op(Reduce(kind, std::move(axes), keepdims));
}

void add_kind(std::vector<OpCase>& cases, ReduceKind kind) {
  const Shape image = {2, 3, 4, 5};
  cases.push_back({"all", reduce(kind, {}), {f32(image)}});
  cases.push_back({"all_dropped", reduce(kind, {}, false), {f32(image)}});
  cases.push_back({"rank0", reduce(kind, {}), {f32({})}});
  cases.push_back({"first", reduce(kind, {0}), {f32(image)}});
  cases.push_back({"last", reduce(kind, {-1}, false), {f32(image)}});
  cases.push_back({"middle", reduce(kind, {1}, false), {f32(image)}});
  cases.push_back({"two_middle", reduce(kind, {1, 2}), {f32(image)}});
  cases.push_back({"tail_unsorted", reduce(kind, {3, -2}), {f32(image)}});
  cases.push_back({"apart", reduce(kind, {0, 2}), {f32(image)}});
  cases.push_back({"per_channel", reduce(kind, {0, 2, 3}, false), {f32(image)}});
  cases.push_back({"size_one_axis", reduce(kind, {1}), {f32({3, 1, 5})}});
  cases.push_back({"around_size_one", reduce(kind, {0, 2}), {f32({6, 1, 7})}});
  // Beyond one block of the stated tree, in rows, columns and apart.
  cases.push_back({"long_rows", reduce(kind, {1}), {f32({3, 2500})}});
  cases.push_back({"long_columns", reduce(kind, {0}), {f32({2500, 3})}});
  cases.push_back({"long_middle", reduce(kind, {1}, false), {f32({2, 1100, 3})}});
  cases.push_back({"long_apart", reduce(kind, {0, 2, 3}), {f32({2, 3, 40, 50})}});
  cases.push_back({"columns_of_many_rows", reduce(kind, {0}), {f32({40, 9})}});
  // Many short rows, whole blocks of them and more.
  cases.push_back({"short_rows", reduce(kind, {1}), {f32({33, 24})}});
  cases.push_back({"short_rows_and_one", reduce(kind, {1}, false), {f32({129, 9})}});
  cases.push_back({"longest_short_rows", reduce(kind, {-1}), {f32({5, 8, 128})}});
  cases.push_back({"beyond_short_rows", reduce(kind, {1}), {f32({40, 129})}});
  cases.push_back({"very_long", reduce(kind, {}, false), {f32({70001})}});
  cases.push_back({"one_block", reduce(kind, {1}), {f32({2, 1024})}});
  cases.push_back({"one_block_and_one", reduce(kind, {1}), {f32({2, 1025})}});
  if (kind == ReduceKind::Mean) return;
  for (const auto dtype : {DType::I32, DType::I64}) {
    const auto name = std::string(to_string(dtype));
    cases.push_back({name, reduce(kind, {1}), {of(dtype, {5, 37}, -50, 50)}, false});
    cases.push_back({name + "_short", reduce(kind, {1}), {of(dtype, {40, 6}, -9, 9)}, false});
    cases.push_back({name + "_apart", reduce(kind, {0, 2}), {of(dtype, {2, 3, 4}, -9, 9)}, false});
  }
}

void add_argmax(std::vector<OpCase>& cases) {
  ArgMax op;
  cases.push_back({"first_axis", make_op(op), {f32({7, 5})}});
  op.axis = 1;
  cases.push_back({"channels", make_op(op), {f32({2, 5, 3, 4})}});
  op.keepdims = false;
  cases.push_back({"dropped", make_op(op), {f32({2, 5, 3, 4})}});
  op.axis = -1;
  cases.push_back({"last_axis", make_op(op), {f32({3, 1500})}});
  cases.push_back({"i32", make_op(op), {of(DType::I32, {6, 40}, -5, 5)}});
  for (const auto dtype : {DType::BF16, DType::F16, DType::I8, DType::U8, DType::I64}) {
    cases.push_back({std::string(to_string(dtype)), make_op(op), {of(dtype, {6, 40}, 0, 5)}});
  }
  const auto ties = exactly(DType::F32, {2, 4}, {1, 3, 3, 2, -1, -1, -1, -1});
  cases.push_back({"first_of_ties", make_op(op), {ties}});
  const auto nans =
      exactly(DType::F32, {3, 4}, {1, kNan, 3, kNan, kNan, 1, 2, kNan, 1, 2, 3, kNan});
  cases.push_back({"first_nan", make_op(op), {nans}});
  op.select_last_index = true;
  cases.push_back({"last_of_ties", make_op(op), {ties}});
  cases.push_back({"last_nan", make_op(op), {nans}});
}

/// A maximum or minimum is chosen, not computed: a subnormal stays.
void add_subnormals(std::vector<OpCase>& cases) {
  constexpr double subnormal = 0x1p-149, tiny = 0x1p-126;
  std::vector<double> values = {subnormal, -1, -subnormal, -1, subnormal, 0, -tiny, -subnormal};
  const auto add = [&](ReduceKind kind) {
    const auto x = exactly(DType::F32, {4, 2}, values);
    cases.push_back({"around_the_smallest_normal", reduce(kind, {1}), {x}, false});
  };
  add(ReduceKind::Max);
  for (auto& value : values) value = -value;
  add(ReduceKind::Min);
}

/// A NaN is in the result wherever it lies: alone in a lane, in a later block, in a column.
void add_special(std::vector<OpCase>& cases, ReduceKind kind) {
  std::vector<double> values(std::size_t{3} * 2500, 1);
  for (const std::size_t place : {0, 2499, 2500 + 1030}) values[place] = kNan;
  values[5003] = -kInfinity;
  cases.push_back(
      {"nan_in_long_rows", reduce(kind, {1}), {exactly(DType::F32, {3, 2500}, values)}, false});
  cases.push_back(
      {"nan_in_long_columns", reduce(kind, {0}), {exactly(DType::F32, {2500, 3}, values)}, false});
  cases.push_back({"special",
                   reduce(kind, {1}),
                   {exactly(DType::F32, {5, 3},
                            {kNan, 2, 1, 3, kNan, 1, 2, 1, kNan, kInfinity, -kInfinity, 1,
                             -kInfinity, -kInfinity, -kInfinity})},
                   false});
}

}  // namespace

void add_reduce_cases(std::vector<OpCase>& cases) {
  add_subnormals(cases);
  for (const auto kind : all_reduce_kinds()) add_kind(cases, kind);
  const auto ties = exactly(DType::F32, {2, 4}, {1, 3, 3, 2, -1, -1, -1, -1});
  cases.push_back({"ties", reduce(ReduceKind::Max, {1}), {ties}, false});
  cases.push_back({"ties", reduce(ReduceKind::Min, {1}), {ties}, false});
  cases.push_back({"empty", reduce(ReduceKind::Sum, {1}), {f32({3, 0})}, false});
  cases.push_back({"i32_wraps",
                   reduce(ReduceKind::Sum, {0}),
                   {exactly(DType::I32, {3}, {2147483647, 2147483647, 5})},
                   false});
  cases.push_back({"cancels",
                   reduce(ReduceKind::Sum, {0}),
                   {exactly(DType::F32, {4}, {1e6, 0.25, -1e6, 0.125})},
                   false});
  std::vector<double> infinite(32, 1);
  infinite[6] = kInfinity, infinite[7] = -kInfinity, infinite[8] = kNan;
  for (const auto kind : all_reduce_kinds()) {
    cases.push_back(
        {"nan_in_short_rows", reduce(kind, {1}), {exactly(DType::F32, {16, 2}, infinite)}, false});
  }
  for (const auto kind : {ReduceKind::Sum, ReduceKind::Mean}) {
    for (const std::int64_t axis : {0, 1}) {
      cases.push_back({fmt::format("nan_along_{}", axis),
                       reduce(kind, {axis}),
                       {exactly(DType::F32, {2, 2}, {kInfinity, -kInfinity, -kInfinity, 1})},
                       false});
    }
  }
  for (const auto kind : {ReduceKind::Max, ReduceKind::Min}) add_special(cases, kind);
  add_argmax(cases);
}

}  // namespace triptych::conformance
