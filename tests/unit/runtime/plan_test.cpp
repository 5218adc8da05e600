// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/reshape.h"
#include "core/ops/unary.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using namespace testing_device;

const std::initializer_list<std::string_view> kOps = {"Relu",   "Neg",        "Add",
                                                      "Concat", "Accumulate", "Pair"};

/// Two outputs, the second of another size. It may write the first over x.
struct Pair : OpOf<Pair> {
  static constexpr std::string_view kName = "Pair";
  static constexpr std::string_view kSummary = "y = x, z = 0";

  static void visit(auto&, auto&) {}
  std::vector<TensorSpec> infer(Specs inputs) const override {
    return {inputs[0], {DType::F32, {1}}};
  }
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override {
    outputs[0].values = inputs[0].values;
  }
  bool may_overwrite(int) const override { return true; }
};

/// y = -(-x) for a device without a kernel of its own.
struct Twice : OpOf<Twice> {
  static constexpr std::string_view kName = "Twice";
  static constexpr std::string_view kSummary = "y = -(-x)";

  static void visit(auto&, auto&) {}
  std::vector<TensorSpec> infer(Specs inputs) const override { return {inputs[0]}; }
  void reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const override {
    outputs[0].values = inputs[0].values;
  }
  bool composite() const override { return true; }
  std::vector<ValueId> expand(OpEmitter& emitter, Values inputs) const override {
    const auto negative = emitter.emit_one(make_op(Unary(UnaryKind::Neg)), {inputs[0]});
    return {emitter.emit_one(make_op(Unary(UnaryKind::Neg)), {negative})};
  }
};

/// A graph that grows by one-output nodes.
struct Net {
  Graph graph;

  ValueId input(Shape shape) { return graph.add_input("x", {DType::F32, std::move(shape)}); }
  ValueId unary(UnaryKind kind, ValueId x) { return graph.emit_one(make_op(Unary(kind)), {x}); }
  ValueId relu(ValueId x) { return unary(UnaryKind::Relu, x); }
  ValueId neg(ValueId x) { return unary(UnaryKind::Neg, x); }
  ValueId add(ValueId a, ValueId b) { return graph.emit_one(make_op(Binary()), {a, b}); }
  ValueId concat(std::vector<ValueId> inputs, std::int64_t axis) {
    Concat op;
    op.axis = axis;
    return graph.emit(make_op(op), inputs)[0];
  }
  ValueId reshape(ValueId x, std::vector<std::int64_t> shape) {
    Reshape op;
    op.shape = std::move(shape);
    return graph.emit_one(make_op(op), {x});
  }
};

class PlanTest : public testing::Test {
 protected:
  Plan plan(Graph graph, const PlanOptions& options = {}) {
    return make_plan(std::move(graph), {&device}, options);
  }
  Plan plan_strided(Graph graph, const PlanOptions& options = {}) {
    return make_plan(std::move(graph), {&strided_device}, options);
  }

  ReferenceDevice device{"toy", reference_kernels(kOps)};
  ReferenceDevice strided_device{"strided", reference_kernels<true>(kOps)};
  Net net;
};

std::size_t offset(const Plan& plan, ValueId value) {
  return plan.locations[0][value.index()].value().offset;
}

ValueId root(const Plan& plan, ValueId value) {
  return plan.locations[0][value.index()].value().root;
}

TEST_F(PlanTest, a_chain_of_elementwise_nodes_runs_in_one_block_behind_the_input) {
  const auto x = net.input({4, 16});
  auto y = x;
  for (int i = 0; i < 5; ++i) y = net.relu(y);
  net.graph.mark_output("y", y);
  const auto result = plan(net.graph.clone());
  EXPECT_EQ(result.arena_bytes[0], 2 * 256u + 128u);
  EXPECT_EQ(result.scratch_bytes[0], 128u);
  EXPECT_NE(root(result, y), x);
}

TEST_F(PlanTest, a_value_that_is_read_later_is_not_overwritten) {
  const auto a = net.relu(net.input({4, 16}));
  const auto b = net.neg(a);
  const auto c = net.add(a, b);
  net.graph.mark_output("c", c);
  const auto result = plan(net.graph.clone());
  EXPECT_NE(offset(result, a), offset(result, b));
  EXPECT_EQ(offset(result, a), offset(result, c));
}

TEST_F(PlanTest, a_value_that_a_view_reads_later_is_not_overwritten) {
  const auto a = net.relu(net.input({4, 16}));
  const auto view = net.reshape(a, {64});
  const auto b = net.neg(a);
  net.graph.mark_output("b", b);
  net.graph.mark_output("c", net.neg(view));
  const auto result = plan(net.graph.clone());
  EXPECT_NE(offset(result, a), offset(result, b));
}

TEST_F(PlanTest, inputs_outputs_states_and_constants_are_not_overwritten) {
  const auto x = net.input({64});
  const auto state = net.graph.add_state("s", filled({64}, 1));
  const auto constant = net.graph.constant(filled({64}, 2));
  const auto out = net.relu(x);
  net.graph.mark_output("out", out);
  std::vector<ValueId> copies;
  for (const auto value : {x, state, constant, out}) copies.push_back(net.neg(value));
  for (const auto copy : copies) net.graph.mark_output(net.graph.value(copy).name, copy);
  const auto result = plan(net.graph.clone());
  for (const auto copy : copies) EXPECT_EQ(root(result, copy), copy);
  EXPECT_EQ(result.state_bytes[0], 256u);
  EXPECT_EQ(result.constant_bytes[0], 256u);
  EXPECT_EQ(result.arena_bytes[0], 6 * 256u + 128u);
}

TEST_F(PlanTest, a_broadcast_input_is_not_overwritten) {
  const auto x = net.input({16, 16});
  const auto row = net.relu(net.graph.add_input("r", {DType::F32, {16}}));
  const auto sum = net.add(x, row);
  net.graph.mark_output("y", sum);
  const auto result = plan(net.graph.clone());
  EXPECT_EQ(root(result, sum), sum);
}

TEST_F(PlanTest, a_view_shares_its_inputs_memory) {
  const auto a = net.relu(net.input({4, 16}));
  const auto view = net.reshape(a, {2, 32});
  net.graph.mark_output("y", net.concat({view, view}, 0));
  const auto result = plan(net.graph.clone());
  EXPECT_EQ(offset(result, view), offset(result, a));
  EXPECT_EQ(root(result, view), a);
  EXPECT_EQ(result.locations[0][view.index()]->outer_stride, 32);
}

TEST_F(PlanTest, an_update_lives_in_its_state) {
  const auto state = net.graph.add_state("s", filled({64}, 1));
  const auto after = net.graph.emit_one(make_op(Accumulate{}), {state, net.input({64})});
  const auto result = plan(net.graph.clone());
  EXPECT_EQ(result.locations[0][after.index()]->storage, Storage::State);
  EXPECT_EQ(root(result, after), state);
}

TEST_F(PlanTest, keep_values_gives_every_value_memory_of_its_own) {
  auto y = net.input({64});
  for (int i = 0; i < 5; ++i) y = net.relu(y);
  const auto result = plan(net.graph.clone(), {.keep_values = true});
  EXPECT_EQ(result.arena_bytes[0], 6 * 256u + 128u);
  for (const auto& value : net.graph.values()) EXPECT_EQ(root(result, value.id), value.id);
}

TEST_F(PlanTest, a_second_output_does_not_hinder_overwriting) {
  const auto a = net.relu(net.input({64}));
  const auto outputs = net.graph.emit(make_op(Pair{}), std::vector{a});
  net.graph.mark_output("y", outputs[0]);
  const auto result = plan(net.graph.clone());
  EXPECT_EQ(root(result, outputs[0]), a);
  EXPECT_EQ(root(result, outputs[1]), outputs[1]);
}

class ConcatPlanTest : public PlanTest {
 protected:
  /// Two branches of 1 and 3 channels, joined.
  ConcatPlanTest() : x(net.graph.add_input("x4", {DType::F32, {2, 4, 4, 4}})) {}

  void build(std::int64_t batch = 2, std::int64_t width = 4) {
    const auto x1 = net.graph.add_input("x1", {DType::F32, {batch, 1, 4, width}});
    const auto x3 = net.graph.add_input("x3", {DType::F32, {batch, 3, 4, width}});
    a = net.relu(x1);
    b = net.neg(x3);
    y = net.concat({a, b}, 1);
    net.graph.mark_output("y", y);
  }

  ValueId x, a, b, y;
};

TEST_F(ConcatPlanTest, producers_write_into_the_concat) {
  build();
  const auto result = plan_strided(net.graph.clone());
  EXPECT_EQ(root(result, a), y);
  EXPECT_EQ(root(result, b), y);
  EXPECT_EQ(offset(result, b), offset(result, y) + 64);
  EXPECT_EQ(result.locations[0][a.index()]->outer_stride, 64);
  EXPECT_EQ(result.steps[2].entry, nullptr);
  EXPECT_EQ(result.output_operands(result.steps[1])[0].outer_stride, 64);
}

TEST_F(ConcatPlanTest, one_image_needs_no_strides) {
  build(1);
  const auto result = plan(net.graph.clone());
  EXPECT_EQ(result.steps[2].entry, nullptr);
  EXPECT_TRUE(result.output_operands(result.steps[1])[0].is_dense());
}

TEST_F(ConcatPlanTest, kernels_that_want_dense_operands_keep_the_copy) {
  build();
  const auto result = plan(net.graph.clone());
  EXPECT_NE(result.steps[2].entry, nullptr);
  EXPECT_EQ(root(result, a), a);
}

TEST_F(ConcatPlanTest, a_reader_that_wants_dense_operands_keeps_the_copy) {
  build();
  auto kernels = reference_kernels<true>({"Relu", "Neg"});
  kernels.push_back(kernel_entry<ReferenceKernel<false>>("Add", "dense"));
  kernels.push_back(kernel_entry<ReferenceKernel<false>>("Concat", "dense"));
  ReferenceDevice mixed("mixed", kernels);
  EXPECT_EQ(make_plan(net.graph.clone(), {&mixed}).steps[2].entry, nullptr);
  net.graph.mark_output("z", net.add(a, a));
  EXPECT_NE(make_plan(net.graph.clone(), {&mixed}).steps[2].entry, nullptr);
}

TEST_F(ConcatPlanTest, a_piece_that_another_device_reads_keeps_the_copy) {
  build();
  net.graph.mark_output("z", net.add(a, a));
  ReferenceDevice first("first", reference_kernels<true>({"Relu", "Neg", "Concat"}));
  ReferenceDevice other("other", reference_kernels<true>({"Add"}));
  EXPECT_NE(make_plan(net.graph.clone(), {&first, &other}).steps[2].entry, nullptr);
}

TEST_F(ConcatPlanTest, it_can_be_switched_off) {
  build();
  const auto result = plan_strided(net.graph.clone(), {.concat_in_place = false});
  EXPECT_NE(result.steps[2].entry, nullptr);
}

TEST_F(ConcatPlanTest, pieces_that_would_not_be_aligned_keep_the_copy) {
  build(2, 3);
  const auto result = plan_strided(net.graph.clone());
  EXPECT_NE(result.steps[2].entry, nullptr);
}

TEST_F(ConcatPlanTest, an_inner_axis_keeps_the_copy) {
  a = net.relu(x);
  b = net.neg(x);
  net.graph.mark_output("y", net.concat({a, b}, 2));
  const auto result = plan_strided(net.graph.clone());
  EXPECT_NE(result.steps[2].entry, nullptr);
}

TEST_F(ConcatPlanTest, values_that_live_elsewhere_or_are_shared_keep_the_copy) {
  const auto state = net.graph.add_state("s", filled({2, 4, 4, 4}, 1));
  const auto old = net.graph.add_state("t", filled({2, 4, 4, 4}, 1));
  const auto update = net.graph.emit_one(make_op(Accumulate{}), {old, x});
  a = net.relu(x);
  const auto marked = net.neg(x);
  const auto viewed = net.neg(x);
  net.graph.mark_output("marked", marked);
  net.graph.mark_output("view", net.reshape(viewed, {128}));
  const std::vector<std::vector<ValueId>> lists = {{a, x},      {a, state},  {a, update},
                                                   {a, marked}, {a, viewed}, {a, a}};
  for (const auto& list : lists) {
    Net one{net.graph.clone()};
    one.graph.mark_output("y", one.concat(list, 1));
    const auto result = plan_strided(one.graph.clone());
    EXPECT_NE(result.steps.back().entry, nullptr);
  }
}

TEST_F(ConcatPlanTest, a_value_goes_into_one_concat_only) {
  a = net.relu(x);
  b = net.neg(x);
  const auto c = net.neg(x);
  net.graph.mark_output("y", net.concat({a, b}, 1));
  net.graph.mark_output("z", net.concat({b, c}, 1));
  const auto result = plan_strided(net.graph.clone());
  EXPECT_EQ(result.steps[3].entry, nullptr);
  EXPECT_NE(result.steps[4].entry, nullptr);
}

TEST_F(ConcatPlanTest, a_concat_in_place_does_not_nest) {
  a = net.relu(x);
  b = net.neg(x);
  const auto inner = net.concat({a, b}, 1);
  net.graph.mark_output("z", net.concat({inner, net.neg(x)}, 1));
  const auto result = plan_strided(net.graph.clone());
  EXPECT_EQ(result.steps[2].entry, nullptr);
  EXPECT_NE(result.steps[4].entry, nullptr);
}

TEST_F(ConcatPlanTest, a_piece_is_neither_written_over_nor_written_over_its_input) {
  a = net.relu(x);
  b = net.relu(a);
  const auto c = net.neg(x);
  y = net.concat({b, c}, 1);
  const auto d = net.relu(b);
  net.graph.mark_output("d", d);
  const auto result = plan_strided(net.graph.clone());
  EXPECT_EQ(root(result, b), y);
  EXPECT_EQ(root(result, d), d);
}

TEST_F(PlanTest, a_composite_is_expanded_unless_the_device_has_a_kernel) {
  net.graph.mark_output("y", net.graph.emit_one(make_op(Twice{}), {net.input({4})}));
  EXPECT_EQ(plan(net.graph.clone()).steps.size(), 2u);
  ReferenceDevice whole("toy", reference_kernels({"Twice", "Neg"}));
  EXPECT_EQ(make_plan(net.graph.clone(), {&whole}).steps.size(), 1u);
}

TEST_F(PlanTest, a_fallbacks_composite_is_used_only_if_the_first_device_lacks_a_part) {
  net.graph.mark_output("y", net.graph.emit_one(make_op(Twice{}), {net.input({4})}));
  ReferenceDevice nothing("none", {});
  ReferenceDevice fallback("cpu", reference_kernels({"Twice", "Neg"}));
  EXPECT_EQ(make_plan(net.graph.clone(), {&nothing, &fallback}).steps.size(), 1u);
  const auto expanded = make_plan(net.graph.clone(), {&device, &fallback});
  EXPECT_EQ(expanded.steps.size(), 2u);
  EXPECT_EQ(expanded.steps[0].device, 0u);
}

TEST_F(PlanTest, a_plan_needs_a_device) {
  EXPECT_THROW(make_plan(net.graph.clone(), {}), InvalidArgument);
}

/// Always agrees to leave an output for the next kernel, and reports as which input.
struct KeepingKernel : ReferenceKernel<false> {
  using ReferenceKernel<false>::ReferenceKernel;
  std::string keep_output_for(Kernel&, std::size_t input) override {
    return fmt::format("input {}", input);
  }
};

std::vector<std::string> kept_outputs(const Plan& plan) {
  std::vector<std::string> kept;
  for (const auto& step : plan.steps) kept.push_back(step.keeps_output);
  return kept;
}

TEST_F(PlanTest, an_output_may_stay_on_the_device_for_its_only_reader_if_that_runs_next) {
  std::vector<KernelEntry> kernels;
  for (const auto op : kOps) kernels.push_back(kernel_entry<KeepingKernel>(op, "keeping"));
  ReferenceDevice keeping("keeping", kernels);
  const auto x = net.input({4, 16});
  const auto a = net.relu(x);
  const auto b = net.neg(a);
  const auto c = net.relu(b);
  const auto d = net.add(b, c);
  const auto e = net.neg(x);  // runs between d and its reader
  const auto f = net.add(d, e);
  const auto squared = net.add(f, f);
  net.graph.mark_output("y", net.neg(squared));
  net.graph.mark_output("squared", squared);
  const auto kept_with = [&](const PlanOptions& options) {
    return kept_outputs(make_plan(net.graph.clone(), {&keeping}, options));
  };
  EXPECT_THAT(kept_with({}),
              testing::ElementsAre("input 0", "", "input 1", "", "input 1", "", "", ""));
  EXPECT_THAT(kept_with({.keep_outputs = false}), testing::Each(""));
  EXPECT_THAT(kept_with({.keep_values = true}), testing::Each(""));
  EXPECT_THAT(kept_outputs(plan(net.graph.clone())), testing::Each("")) << "no such kernels";
}

}  // namespace
}  // namespace triptych
