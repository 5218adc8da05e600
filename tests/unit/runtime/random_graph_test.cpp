// Random graphs on random devices: the planned memory must give the bits that separate memory
// gives.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/graph/reference.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/reshape.h"
#include "core/ops/unary.h"
#include "core/runtime/executor.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using namespace testing_device;

/// Builds a graph of bounded values: images [2, C, 4, 4], rows [16] and their views.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed, 0) {}

  Graph build() {
    for (int i = 0; i < 2; ++i) {
      const std::int64_t channels = 1 + random_.below(3);
      images_.push_back(graph_.add_input(fmt::format("x{}", i), {DType::F32, {2, channels, 4, 4}}));
    }
    images_.push_back(graph_.constant(filled({2, 2, 4, 4}, -0.5F, 0.125F)));
    for (int i = 0; i < 2; ++i) {
      const auto channels = 1 + random_.below(3);
      states_.push_back(
          graph_.add_state(fmt::format("s{}", i), filled({2, channels, 4, 4}, 0.25F, 0.01F)));
    }
    const auto count = 4 + random_.below(24);
    for (std::int64_t i = 0; i < count; ++i) add_node();
    for (std::size_t i = 0; i < 3; ++i) mark(images_[images_.size() - 1 - i]);
    mark(pick());
    for (const auto state : states_) mark(state);
    return std::move(graph_);
  }

 private:
  ValueId pick() {
    return images_[static_cast<std::size_t>(
        random_.below(static_cast<std::int64_t>(images_.size())))];
  }
  std::int64_t channels(ValueId value) { return graph_.spec(value).shape[1]; }

  void mark(ValueId value) {
    graph_.mark_output(fmt::format("out{}", graph_.outputs().size()), value);
  }

  ValueId of_channels(std::int64_t count) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const auto value = pick();
      if (channels(value) == count || channels(value) == 1) return value;
    }
    return images_[0];
  }

  void add_node() {
    switch (random_.below(8)) {
      case 0:
      case 1:
        return push(make_op(Unary(UnaryKind::Relu)), {pick()});
      case 2:
        return push(make_op(Unary(UnaryKind::Tanh)), {pick()});
      case 3:
        return add_binary();
      case 4:
      case 5:
        return add_concat();
      case 6:
        return add_view();
      default:
        return add_update();
    }
  }

  void push(OpPtr op, std::vector<ValueId> inputs) {
    images_.push_back(graph_.emit(std::move(op), inputs)[0]);
  }

  void add_binary() {
    Binary binary;
    binary.kind = random_.below(2) == 0 ? BinaryKind::Mul : BinaryKind::Sub;
    const auto a = pick();
    const auto b = of_channels(channels(a));
    const bool broadcasts = channels(a) == channels(b) || channels(a) == 1 || channels(b) == 1;
    if (broadcasts) push(make_op(binary), {a, b});
  }

  void add_concat() {
    Concat concat;
    concat.axis = 1;
    const auto a = graph_.emit_one(make_op(Unary(UnaryKind::Tanh)), {pick()});
    const auto b = random_.below(3) == 0 ? pick() : graph_.emit_one(make_op(Unary()), {pick()});
    if (channels(a) + channels(b) <= 8) push(make_op(concat), {a, b});
    if (random_.below(2) == 0) images_.push_back(a);
  }

  void add_view() {
    const auto x = pick();
    Reshape flat;
    flat.shape = {-1};
    Reshape back;
    back.shape = {2, channels(x), 4, 4};
    const auto row = graph_.emit_one(make_op(flat), {x});
    const auto end = random_.below(2) == 0 ? row : graph_.emit_one(make_op(Unary()), {row});
    push(make_op(back), {end});
  }

  /// Nothing but the marked update reads the state from then on.
  void add_update() {
    for (auto& state : states_) {
      if (graph_.value(state).kind != ValueKind::State) continue;
      const auto x = pick();
      if (channels(x) != channels(state)) continue;
      const auto before = graph_.emit_one(make_op(Unary(UnaryKind::Tanh)), {state});
      state = graph_.emit_one(make_op(Accumulate{}), {state, x});
      images_.push_back(before);
      images_.push_back(graph_.emit_one(make_op(Unary(UnaryKind::Tanh)), {state}));
      return;
    }
  }

  Graph graph_;
  RandomStream random_;
  std::vector<ValueId> images_;
  std::vector<ValueId> states_;
};

/// The outputs of two runs, one after another.
std::vector<Tensor> outputs_of(const Graph& graph, std::vector<Device*> devices,
                               const PlanOptions& options) {
  StateStore states(*devices[0]);
  Executor executor(make_plan(graph.clone(), devices, options), states);
  std::vector<Tensor> results;
  for (int run = 0; run < 2; ++run) {
    for (const auto id : graph.values_of(ValueKind::Input)) {
      const auto& input = graph.value(id);
      if (run == 0) executor.set_input(input.name, filled(input.spec.shape, -0.6F, 0.02F));
    }
    executor.run();
    for (const auto& output : executor.plan().graph.outputs()) {
      results.push_back(executor.output(output.name));
    }
  }
  return results;
}

void expect_equal(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(actual[i].bytes(), expected[i].bytes())) << "output " << i;
  }
}

class RandomGraphs : public testing::Test {
 protected:
  ReferenceDevice all{
      "all", reference_kernels<true>({"Relu", "Tanh", "Mul", "Sub", "Concat", "Accumulate"})};
  ReferenceDevice some{"some", reference_kernels<true>({"Relu", "Mul", "Concat"})};
  ReferenceDevice dense{"dense", reference_kernels({"Tanh", "Sub", "Accumulate"})};
};

TEST_F(RandomGraphs, give_the_same_bits_in_planned_and_in_separate_memory) {
  std::size_t in_place = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = RandomGraph(seed).build();
    const auto separate = outputs_of(graph, {&all}, {.keep_values = true});
    expect_equal(outputs_of(graph, {&all}, {}), separate);
    const auto plan = make_plan(graph.clone(), {&all});
    const auto kept = make_plan(graph.clone(), {&all}, {.keep_values = true});
    EXPECT_LE(plan.arena_bytes[0], kept.arena_bytes[0]);
    for (const auto& step : plan.steps) {
      const auto& op = *plan.graph.node(step.node).op;
      in_place += step.entry == nullptr && op_cast<Concat>(op) != nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(in_place, 100u);
}

TEST_F(RandomGraphs, give_the_same_bits_when_spread_over_devices) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = RandomGraph(seed).build();
    const auto separate = outputs_of(graph, {&all}, {.keep_values = true});
    expect_equal(outputs_of(graph, {&some, &dense}, {}), separate);
    expect_equal(outputs_of(graph, {&dense, &some}, {}), separate);
    expect_equal(outputs_of(graph, {&dense, &some}, {.keep_values = true}), separate);
  }
}

TEST_F(RandomGraphs, agree_with_the_float64_reference) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = RandomGraph(seed).build();
    std::unordered_map<ValueId, RefTensor> given;
    for (const auto id : graph.values_of(ValueKind::Input)) {
      given[id] = to_reference(filled(graph.spec(id).shape, -0.6F, 0.02F));
    }
    const auto values = evaluate_reference(graph, std::move(given));
    const auto outputs = outputs_of(graph, {&all}, {});
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const auto actual = to_doubles(outputs[i]);
      const auto& expected = values[graph.outputs()[i].value.index()].values;
      for (std::size_t j = 0; j < actual.size(); ++j) {
        ASSERT_NEAR(actual[j], expected[j], 1e-4) << "output " << i;
      }
    }
  }
}

}  // namespace
}  // namespace triptych
