// SPDX-License-Identifier: Apache-2.0
#include "core/ops/slice.h"

#include <limits>

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();
constexpr auto kBegin = std::numeric_limits<std::int64_t>::min();

OpPtr slice(Dims starts, Dims ends, Dims axes = {}, Dims steps = {}) {
  Slice op;
  op.starts = std::move(starts);
  op.ends = std::move(ends);
  op.axes = std::move(axes);
  op.steps = std::move(steps);
  return make_op(op);
}

OpPtr slice_gradient(Dims shape, Dims starts, Dims ends, Dims steps) {
  SliceGradient op;
  op.input_shape = std::move(shape);
  op.starts = std::move(starts);
  op.ends = std::move(ends);
  op.steps = std::move(steps);
  return make_op(op);
}

}  // namespace

void add_slice_cases(std::vector<OpCase>& cases) {
  cases.push_back({"rows", slice({1}, {3}), {f32({4, 5})}});
  cases.push_back({"both_axes", slice({1, 0}, {3, 4}), {f32({4, 5})}});
  cases.push_back({"last_axis", slice({2}, {kEnd}, {-1}), {f32({3, 4, 5})}});
  cases.push_back({"negative_bounds", slice({-3}, {-1}, {1}), {f32({3, 5})}});
  cases.push_back({"clamped", slice({kBegin}, {kEnd}, {1}), {f32({3, 5})}});
  cases.push_back({"step2", slice({1}, {kEnd}, {1}, {2}), {f32({3, 6})}});
  cases.push_back({"step3", slice({0}, {8}, {0}, {3}), {f32({8, 2})}});
  cases.push_back({"step2_both", slice({0, 1}, {7, 7}, {2, 3}, {2, 2}), {f32({2, 2, 7, 7})}});
  cases.push_back({"step_beyond_axis", slice({1}, {kEnd}, {0}, {kEnd}), {f32({5, 2})}});
  cases.push_back({"reversed", slice({-1}, {kBegin}, {1}, {-1}), {f32({3, 5})}});
  cases.push_back({"reversed_step2", slice({kEnd}, {0}, {0}, {-2}), {f32({6, 3})}});
  cases.push_back({"reversed_all",
                   slice({-1, -1, -1}, {kBegin, kBegin, kBegin}, {}, {-1, -3, -2}),
                   {f32({2, 7, 5})}});
  cases.push_back({"unsorted_axes", slice({1, 0}, {3, 2}, {2, 0}), {f32({3, 2, 4})}});
  cases.push_back({"empty", slice({3}, {1}), {f32({4, 2})}});
  cases.push_back({"of_empty", slice({0}, {kEnd}, {1}, {-1}), {f32({3, 0})}});
  cases.push_back({"nothing_cut", slice({}, {}), {f32({2, 3})}});
  cases.push_back({"rank5", slice({1, 1, 0}, {3, 3, 2}, {0, 2, 4}), {f32({3, 2, 4, 2, 3})}});
  add_dtypes(cases, "step2", slice({1}, {kEnd}, {1}, {2}), {3, 9});
  cases.push_back({"inside", slice_gradient({4, 5}, {1, 1}, {3, 4}, {}), {f32({2, 3})}});
  cases.push_back({"step2", slice_gradient({4, 5}, {0, 0}, {4, 5}, {2, 2}), {f32({2, 3})}});
  cases.push_back(
      {"reversed", slice_gradient({4, 5}, {-1, -1}, {kBegin, 1}, {-1, -3}), {f32({4, 1})}});
  cases.push_back({"empty", slice_gradient({4, 5}, {2}, {2}, {}), {f32({0, 5})}});
}

}  // namespace triptych::conformance
