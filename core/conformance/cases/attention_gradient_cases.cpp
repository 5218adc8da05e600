// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_gradient.h"

#include <cmath>

#include "core/base/random.h"
#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

struct Sizes {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1;
  std::int64_t head_size = 1, value_size = 1;
};

/// Shapes of q, k, v and dy, with the heads on an axis of their own or side by side.
std::vector<Shape> shapes(const Sizes& s, bool merged) {
  if (merged) {
    return {{s.batch, s.queries, s.heads * s.head_size},
            {s.batch, s.keys, s.kv_heads * s.head_size},
            {s.batch, s.keys, s.kv_heads * s.value_size},
            {s.batch, s.queries, s.heads * s.value_size}};
  }
  return {{s.batch, s.heads, s.queries, s.head_size},
          {s.batch, s.kv_heads, s.keys, s.head_size},
          {s.batch, s.kv_heads, s.keys, s.value_size},
          {s.batch, s.heads, s.queries, s.value_size}};
}

/// Multiples of 1/128 in [-1, 1): bfloat16 holds them, so that y and sums are those of the operands
/// under every contract.
RefTensor operand(const Shape& shape, std::uint64_t stream) {
  RefTensor tensor{{DType::F32, shape}, {}};
  RandomStream random(3, stream);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    tensor.values.push_back(std::floor(random.uniform(-1, 1) * 128) / 128);
  }
  return tensor;
}

AttentionWithSums with_sums(const AttentionAttributes& attributes) {
  AttentionWithSums op;
  static_cast<AttentionAttributes&>(op) = attributes;
  return op;
}

/// Operands, and the results of attention for them.
std::vector<InputRule> inputs_of(const AttentionAttributes& attributes,
                                 const std::vector<Shape>& shapes, bool with_its_sums) {
  std::vector<RefTensor> qkv;
  for (std::size_t i = 0; i < 3; ++i) qkv.push_back(operand(shapes[i], i));
  const auto op = with_sums(attributes);
  const TensorSpec specs[] = {qkv[0].spec, qkv[1].spec, qkv[2].spec};
  std::vector<RefTensor> results;
  for (const auto& spec : op.infer(specs)) {
    results.push_back({spec, std::vector<double>(static_cast<std::size_t>(spec.shape.elements()))});
  }
  op.reference(qkv, results);
  std::vector<InputRule> rules;
  const auto add = [&](const RefTensor& tensor) {
    rules.push_back(exactly(DType::F32, tensor.spec.shape, tensor.values));
  };
  for (const auto& tensor : qkv) add(tensor);
  add(results[0]);
  add(operand(shapes[3], 3));
  if (with_its_sums) add(results[1]);
  return rules;
}

AttentionAttributes causal() {
  AttentionAttributes attributes;
  attributes.is_causal = true;
  return attributes;
}

class Cases {
 public:
  explicit Cases(std::vector<OpCase>& cases) : cases_(cases) {}

  void add(const std::string& name, AttentionAttributes attributes, const Sizes& sizes,
           bool merged = false) {
    if (merged) {
      attributes.q_num_heads = sizes.heads;
      attributes.kv_num_heads = sizes.kv_heads;
    }
    const auto all = shapes(sizes, merged);
    cases_.push_back(
        {name, make_op(with_sums(attributes)), {f32(all[0]), f32(all[1]), f32(all[2])}, false});
    AttentionGradient op;
    static_cast<AttentionAttributes&>(op) = attributes;
    cases_.push_back({name, make_op(op), inputs_of(attributes, all, true), false});
    cases_.push_back(
        {name + "_without_sums", make_op(op), inputs_of(attributes, all, false), false});
  }

 private:
  std::vector<OpCase>& cases_;
};

}  // namespace

void add_attention_gradient_cases(std::vector<OpCase>& cases) {
  Cases list(cases);
  list.add("one_key", {}, {1, 1, 1, 3, 1, 4, 4});
  list.add("one_query", {}, {1, 1, 1, 1, 9, 4, 4});
  list.add("heads", {}, {2, 3, 3, 5, 7, 8, 8});
  list.add("values_of_another_size", {}, {1, 2, 2, 5, 6, 4, 7});
  list.add("shared_heads", {}, {2, 6, 2, 5, 4, 4, 3});
  list.add("causal_more_keys", causal(), {1, 2, 1, 3, 7, 4, 4});
  list.add("causal_more_queries", causal(), {1, 1, 1, 7, 3, 4, 4});
  list.add("rank3", {}, {2, 4, 2, 5, 6, 3, 5}, true);
  list.add("rank3_causal", causal(), {2, 4, 2, 5, 6, 3, 5}, true);
  // More than a tile of queries and of keys, whole ones and not.
  list.add("tiles", {}, {1, 2, 2, 128, 128, 64, 64});
  list.add("tiles_ragged", {}, {1, 1, 1, 75, 139, 33, 40});
  list.add("tiles_causal", causal(), {1, 4, 2, 139, 139, 16, 16});
  // More than the keys and the queries that the CPU handles at once.
  list.add("key_blocks", {}, {1, 2, 1, 130, 300, 16, 20});
  list.add("key_blocks_causal", causal(), {1, 1, 1, 300, 330, 8, 8});
  list.add("large_heads", {}, {1, 1, 1, 20, 70, 128, 128});
  list.add("larger_heads", {}, {1, 1, 1, 5, 20, 160, 136});
  AttentionAttributes scaled;
  scaled.scale = 4;
  list.add("large_scores", scaled, {1, 1, 1, 70, 150, 16, 16});
}

}  // namespace triptych::conformance
