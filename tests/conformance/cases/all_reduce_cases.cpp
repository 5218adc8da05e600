// AllReduce as the only rank of its axis; what several ranks do is in tests/unit/parallel.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/all_reduce.h"

#include "tests/conformance/op_case.h"

namespace triptych::conformance {

void add_all_reduce_cases(std::vector<OpCase>& cases) {
  cases.push_back({"one", make_op(AllReduce{}), {f32({2, 3, 5})}});
  AllReduce average;
  average.scale = 0.25F;
  average.order = "shard-tree";
  cases.push_back({"several_and_scaled", make_op(average), {f32({7}), f32({2, 3}), f32({})}});
  average.order = "ring";
  cases.push_back({"ring", make_op(average), {f32({9})}});
}

}  // namespace triptych::conformance
