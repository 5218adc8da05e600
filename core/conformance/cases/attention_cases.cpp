// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

struct Sizes {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1;
  std::int64_t head_size = 1, value_size = 1;
};

std::vector<InputRule> operands(const Sizes& s) {
  return {f32({s.batch, s.heads, s.queries, s.head_size}),
          f32({s.batch, s.kv_heads, s.keys, s.head_size}),
          f32({s.batch, s.kv_heads, s.keys, s.value_size})};
}

/// With the heads side by side.
std::vector<InputRule> rows(const Sizes& s) {
  return {f32({s.batch, s.queries, s.heads * s.head_size}),
          f32({s.batch, s.keys, s.kv_heads * s.head_size}),
          f32({s.batch, s.keys, s.kv_heads * s.value_size})};
}

Attention causal() {
  Attention op;
  op.is_causal = true;
  return op;
}

Attention with_heads(Attention op, const Sizes& s) {
  op.q_num_heads = s.heads;
  op.kv_num_heads = s.kv_heads;
  return op;
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, const Attention& op, const Sizes& sizes) {
    cases.push_back({std::move(name), make_op(op), operands(sizes)});
  };
  add("one_key", {}, {1, 1, 1, 3, 1, 4, 4});
  add("one_query", {}, {1, 1, 1, 1, 9, 4, 4});
  add("heads", {}, {2, 3, 3, 5, 7, 8, 8});
  add("values_of_another_size", {}, {1, 2, 2, 5, 6, 4, 7});
  add("large_keys", {}, {1, 1, 1, 3, 4, 70, 5});
  add("large_values", {}, {1, 1, 1, 3, 4, 5, 70});
  add("shared_heads", {}, {2, 6, 2, 5, 4, 4, 3});
  add("causal", causal(), {1, 2, 2, 6, 6, 4, 4});
  add("causal_more_keys", causal(), {1, 2, 1, 3, 7, 4, 4});
  add("causal_more_queries", causal(), {1, 1, 1, 7, 3, 4, 4});
  Attention scaled;
  scaled.scale = 0.25F;
  add("scaled", scaled, {1, 1, 1, 4, 5, 9, 2});

  const Sizes shared = {2, 4, 2, 5, 6, 3, 5};
  cases.push_back({"rank3", make_op(with_heads({}, shared)), rows(shared)});
  cases.push_back({"rank3_causal", make_op(with_heads(causal(), shared)), rows(shared)});

  // More than a tile of queries and of keys, whole ones and not. No gradient, for the time it
  // takes.
  const auto add_large = [&](std::string name, const Attention& op, const Sizes& sizes) {
    cases.push_back({std::move(name), make_op(op), operands(sizes), false});
  };
  add_large("tiles", {}, {1, 2, 2, 128, 128, 64, 64});
  add_large("tiles_ragged", {}, {1, 1, 1, 75, 139, 33, 40});
  add_large("tiles_causal", causal(), {1, 1, 1, 139, 139, 16, 16});
  add_large("tiles_causal_more_keys", causal(), {1, 1, 1, 70, 200, 16, 16});
  add_large("tiles_causal_more_queries", causal(), {1, 1, 1, 200, 70, 16, 16});
  // More than the keys and the queries that the CPU handles at once.
  add_large("key_blocks", {}, {1, 2, 1, 70, 600, 16, 20});
  add_large("key_blocks_causal", causal(), {1, 1, 1, 300, 530, 8, 8});
  add_large("large_heads", {}, {1, 1, 1, 20, 70, 128, 128});
  add_large("larger_heads", {}, {1, 1, 1, 5, 20, 160, 136});
  // Far apart, so that sums are scaled down again and again.
  scaled.scale = 16;
  add_large("large_scores", scaled, {1, 1, 1, 70, 200, 16, 16});
}

}  // namespace triptych::conformance
