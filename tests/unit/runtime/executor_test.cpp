// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/executor.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/reshape.h"
#include "core/ops/unary.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace testing_device;

template <class E>
struct Failing : ReferenceKernel<false> {
  using ReferenceKernel::ReferenceKernel;
  void run(const KernelArgs&) override { throw E("the fan stopped"); }
};

ValueId unary(Graph& graph, UnaryKind kind, ValueId x) {
  return graph.emit_one(make_op(Unary(kind)), {x});
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

class ExecutorTest : public testing::Test {
 protected:
  /// s += relu(x), y = the new s.
  Graph counter() {
    Graph graph;
    const auto state = graph.add_state("s", filled({4}, 10));
    const auto x = graph.add_input("x", {DType::F32, {4}});
    const auto after =
        graph.emit_one(make_op(Accumulate{}), {state, unary(graph, UnaryKind::Relu, x)});
    graph.mark_output("y", after);
    return graph;
  }

  ReferenceDevice device{"cpu", reference_kernels<true>({"Relu", "Neg", "Add", "Log", "Equal",
                                                         "Concat", "Accumulate"})};
  ReferenceDevice small{"toy", reference_kernels({"Neg", "Add"})};
  StateStore states{device};
  StateStore small_states{small};
};

TEST_F(ExecutorTest, runs_again_with_the_same_and_with_other_inputs) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  graph.mark_output("y", unary(graph, UnaryKind::Relu, unary(graph, UnaryKind::Neg, x)));
  Executor executor(make_plan(std::move(graph), {&device}), states);
  executor.set_input("x", filled({4}, -2));
  for (int i = 0; i < 2; ++i) {
    executor.run();
    EXPECT_THAT(floats(executor.output("y")), Each(2));
  }
  executor.set_input("x", filled({4}, -3));
  executor.run();
  EXPECT_THAT(floats(executor.output("y")), Each(3));
}

TEST_F(ExecutorTest, inputs_come_from_any_memory_of_their_size) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  graph.mark_output("y", unary(graph, UnaryKind::Neg, x));
  Executor executor(make_plan(std::move(graph), {&device}), states);
  std::vector<std::byte> memory(17);
  const std::span unaligned(memory.data() + 1, 16);
  std::ranges::copy(filled({4}, 5).bytes(), unaligned.begin());
  executor.set_input("x", {DType::F32, {4}}, unaligned);
  executor.run();
  EXPECT_THAT(floats(executor.output("y")), Each(-5));
  EXPECT_THROW(executor.set_input("x", {DType::F32, {4}}, unaligned.first(12)), InvalidArgument);
  EXPECT_THROW(executor.set_input("x", {DType::I32, {4}}, unaligned), InvalidArgument);
}

TEST_F(ExecutorTest, states_are_updated_in_place_and_shared_by_executors_of_one_store) {
  Executor train(make_plan(counter(), {&device}), states);
  Graph reader;
  const auto s = reader.add_state("s", filled({4}, 99));
  reader.mark_output("minus_s", unary(reader, UnaryKind::Neg, s));
  Executor evaluate(make_plan(std::move(reader), {&device}), states);
  train.set_input("x", filled({4}, 1));
  train.run();
  train.run();
  EXPECT_THAT(floats(train.output("y")), Each(12));
  EXPECT_THAT(floats(states.read("s")), Each(12));
  evaluate.run();
  EXPECT_THAT(floats(evaluate.output("minus_s")), Each(-12));
  states.write("s", filled({4}, 1));
  train.run();
  EXPECT_THAT(floats(train.output("y")), Each(2));
}

TEST_F(ExecutorTest, a_fallback_device_gives_the_same_result_and_counts_the_crossings) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  const auto a = unary(graph, UnaryKind::Neg, x);            // toy
  const auto b = unary(graph, UnaryKind::Relu, a);           // cpu: a crosses
  const auto c = unary(graph, UnaryKind::Relu, a);           // cpu: a is there
  const auto d = graph.emit_one(make_op(Binary()), {b, c});  // toy: b and c cross
  graph.mark_output("d", graph.emit_one(make_op(Binary()), {d, x}));
  graph.mark_output("b", b);
  Executor executor(make_plan(std::move(graph), {&small, &device}), small_states);
  std::size_t crossings = 0;
  for (const auto& step : executor.plan().steps) crossings += step.crossings.size();
  EXPECT_EQ(crossings, 3u);
  executor.set_input("x", filled({4}, -3, 2));
  for (int i = 0; i < 2; ++i) {
    executor.run();
    EXPECT_THAT(floats(executor.output("b")), ElementsAre(3, 1, 0, 0));
    EXPECT_THAT(floats(executor.output("d")), ElementsAre(3, 1, 1, 3));
  }
}

TEST_F(ExecutorTest, a_view_crosses_with_the_memory_it_looks_at) {
  Graph graph;
  Reshape reshape;
  reshape.shape = {2, 2};
  const auto x = graph.add_input("x", {DType::F32, {4}});
  const auto a = unary(graph, UnaryKind::Neg, x);
  const auto view = graph.emit_one(make_op(reshape), {a});
  const auto b = unary(graph, UnaryKind::Relu, view);
  const auto direct = unary(graph, UnaryKind::Relu, a);
  graph.mark_output("b", b);
  graph.mark_output("view", view);
  graph.mark_output("direct", direct);
  Executor executor(make_plan(std::move(graph), {&small, &device}), small_states);
  executor.set_input("x", filled({4}, -1));
  executor.run();
  EXPECT_EQ(executor.output("b").shape(), Shape({2, 2}));
  EXPECT_THAT(floats(executor.output("b")), Each(1));
  EXPECT_THAT(floats(executor.output("view")), Each(1));
  EXPECT_THAT(floats(executor.output("direct")), Each(1));
  EXPECT_EQ(executor.plan().steps[3].crossings.size(), 0u);
}

TEST_F(ExecutorTest, a_state_that_a_fallback_updates_comes_home) {
  auto graph = counter();
  const auto after = graph.outputs()[0].value;
  graph.mark_output("z", unary(graph, UnaryKind::Neg, after));
  Executor executor(make_plan(std::move(graph), {&small, &device}), small_states);
  executor.set_input("x", filled({4}, 1));
  executor.run();
  executor.run();
  const auto& steps = executor.plan().steps;
  EXPECT_EQ(steps[1].write_backs.size(), 1u);
  EXPECT_EQ(steps[2].crossings.size(), 0u);
  EXPECT_THAT(floats(small_states.read("s")), Each(12));
  EXPECT_THAT(floats(executor.output("y")), Each(12));
  EXPECT_THAT(floats(executor.output("z")), Each(-12));
  small_states.write("s", filled({4}, 0));
  executor.run();
  EXPECT_THAT(floats(executor.output("y")), Each(1));
}

TEST_F(ExecutorTest, constants_reach_every_device_that_reads_them) {
  Graph graph;
  const auto constant = graph.constant(filled({4}, 5));
  graph.mark_output("a", unary(graph, UnaryKind::Neg, constant));
  graph.mark_output("b", unary(graph, UnaryKind::Relu, constant));
  graph.mark_output("c", constant);
  Executor executor(make_plan(std::move(graph), {&small, &device}), small_states);
  executor.run();
  EXPECT_THAT(floats(executor.output("a")), Each(-5));
  EXPECT_THAT(floats(executor.output("b")), Each(5));
  EXPECT_THAT(floats(executor.output("c")), Each(5));
}

TEST_F(ExecutorTest, constants_are_not_copied_for_a_device_that_reads_host_memory) {
  const auto run = [&] {
    Graph graph;
    const auto constant = graph.constant(filled({4}, 5));
    graph.mark_output("a", unary(graph, UnaryKind::Neg, constant));
    graph.mark_output("b", unary(graph, UnaryKind::Relu, constant));
    graph.mark_output("c", constant);
    small.bytes_uploaded = device.bytes_uploaded = 0;
    Executor executor(make_plan(std::move(graph), {&device, &small}), states);
    executor.run();
    EXPECT_THAT(floats(executor.output("a")), Each(-5));
    EXPECT_THAT(floats(executor.output("b")), Each(5));
    EXPECT_THAT(floats(executor.output("c")), Each(5));
  };
  run();
  const auto copied = device.bytes_uploaded;
  device.reads_host = true;
  run();
  EXPECT_EQ(copied, device.bytes_uploaded + 4 * sizeof(float));
}

/// y = concat over channels of relu(a) and -b, and relu(a) read again.
Graph joined() {
  Graph graph;
  const auto a = graph.add_input("a", {DType::F32, {2, 1, 4, 4}});
  const auto b = graph.add_input("b", {DType::F32, {2, 2, 4, 4}});
  const auto left = unary(graph, UnaryKind::Relu, a);
  const auto right = unary(graph, UnaryKind::Neg, b);
  Concat concat;
  concat.axis = 1;
  const auto y = graph.emit_one(make_op(concat), {left, right});
  graph.mark_output("y", y);
  graph.mark_output("again", unary(graph, UnaryKind::Neg, left));
  return graph;
}

TEST_F(ExecutorTest, a_concat_in_place_gives_what_the_copy_gives) {
  Executor in_place(make_plan(joined(), {&device}), states);
  Executor copied(make_plan(joined(), {&device}, {.concat_in_place = false}), states);
  for (auto* executor : {&in_place, &copied}) {
    executor->set_input("a", filled({2, 1, 4, 4}, -3, 0.5F));
    executor->set_input("b", filled({2, 2, 4, 4}, 1, 1));
    executor->run();
  }
  ASSERT_EQ(in_place.plan().steps[2].kernel, nullptr);
  ASSERT_NE(copied.plan().steps[2].kernel, nullptr);
  EXPECT_EQ(floats(in_place.output("y")), floats(copied.output("y")));
  EXPECT_EQ(floats(in_place.output("again")), floats(copied.output("again")));
}

TEST_F(ExecutorTest, a_failing_kernel_is_reported_with_its_node) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  graph.add_node(make_op(Unary(UnaryKind::Relu)), std::vector{x}, "down1.act");
  ReferenceDevice bad("bad", {kernel_entry<Failing<std::runtime_error>>("Relu", "failing")});
  StateStore bad_states(bad);
  Executor executor(make_plan(graph.clone(), {&bad}), bad_states);
  EXPECT_EQ(message_of<DeviceError>([&] { executor.run(); }),
            "node \"down1.act\" (Relu): the fan stopped");
  EXPECT_THROW(executor.run_profiled(), DeviceError);

  ReferenceDevice wrong("wrong", {kernel_entry<Failing<NumericError>>("Relu", "failing")});
  StateStore wrong_states(wrong);
  Executor inexact(make_plan(graph.clone(), {&wrong}), wrong_states);
  EXPECT_EQ(message_of<NumericError>([&] { inexact.run(); }),
            "node \"down1.act\" (Relu): the fan stopped");

  ReferenceDevice lonely("lonely", {kernel_entry<Failing<CommError>>("Relu", "failing")});
  StateStore lonely_states(lonely);
  Executor rank(make_plan(graph.clone(), {&lonely}), lonely_states);
  EXPECT_EQ(message_of<CommError>([&] { rank.run(); }), "the fan stopped")
      << "a fault is the same on every rank, whatever it was doing";
}

TEST_F(ExecutorTest, finds_the_first_node_whose_output_is_not_finite) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  const auto a = unary(graph, UnaryKind::Neg, x);
  const auto b = unary(graph, UnaryKind::Log, a);
  graph.mark_output("y", unary(graph, UnaryKind::Neg, b));
  Executor executor(make_plan(graph.clone(), {&device}), states);
  executor.set_input("x", filled({4}, -1));
  EXPECT_EQ(executor.run_until_not_finite(), std::nullopt);
  EXPECT_THAT(floats(executor.output("y")), Each(0));
  executor.set_input("x", filled({4}, -3, 1));
  EXPECT_EQ(executor.run_until_not_finite(), graph.value(b).producer);
  executor.set_input("x", filled({4}, std::nanf("")));
  EXPECT_EQ(executor.run_until_not_finite(), graph.value(a).producer);
}

TEST_F(ExecutorTest, the_finite_check_sees_only_the_value_in_a_concat_and_no_other_dtype) {
  auto graph = joined();
  const auto a = graph.find("a");
  Binary equal;
  equal.kind = BinaryKind::Equal;
  graph.mark_output("same", graph.emit_one(make_op(equal), {a, a}));
  const auto right = graph.find("neg");
  Executor executor(make_plan(graph.clone(), {&device}), states);
  executor.set_input("a", filled({2, 1, 4, 4}, 1));
  executor.set_input("b", filled({2, 2, 4, 4}, 1));
  EXPECT_EQ(executor.run_until_not_finite(), std::nullopt);
  auto b = filled({2, 2, 4, 4}, 1);
  b.as<float>().back() = INFINITY;
  executor.set_input("b", b);
  EXPECT_EQ(executor.run_until_not_finite(), graph.value(right).producer);
  executor.run();
  // The memory of both branches holds an infinity of the last run now: only one is at fault.
  EXPECT_EQ(executor.run_until_not_finite(), graph.value(right).producer);
}

TEST_F(ExecutorTest, a_profile_has_one_entry_per_step_on_the_devices_clock) {
  Executor executor(make_plan(joined(), {&device}), states);
  executor.run();
  std::vector<NodeId> told;
  const auto profile =
      executor.run_profiled([&](const StepProfile& step) { told.push_back(step.node); });
  EXPECT_EQ(executor.run_profiled().size(), 4u);
  ASSERT_EQ(profile.size(), 4u);
  ASSERT_EQ(told.size(), 4u);
  const double starts[] = {0, 1, 2, 2};
  const double times[] = {1, 1, 0, 1};
  for (std::size_t i = 0; i < profile.size(); ++i) {
    EXPECT_EQ(profile[i].node.index(), i);
    EXPECT_EQ(told[i].index(), i);
    EXPECT_EQ(profile[i].kernel, i == 2 ? "" : "reference");
    EXPECT_EQ(profile[i].start.seconds, starts[i]);
    EXPECT_EQ(profile[i].time.seconds, times[i]);
    EXPECT_EQ(profile[i].time.kind, TimeKind::Simulated);
  }
}

TEST_F(ExecutorTest, neighbours_on_one_device_are_submitted_together_and_released) {
  {
    Executor first(make_plan(joined(), {&device}), states);
    Executor second(make_plan(joined(), {&device}), states);
    first.run();
    first.run();
    second.run();
    std::vector<int> counts;
    for (const auto& [segment, count] : device.submitted) counts.push_back(count);
    EXPECT_THAT(counts, ElementsAre(2, 1));
  }
  EXPECT_TRUE(device.submitted.empty());
}

TEST_F(ExecutorTest, kept_values_are_readable_by_name) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {4}});
  const auto a = graph.add_node(make_op(Unary(UnaryKind::Neg)), std::vector{x}, "a")[0];
  graph.mark_output("y", unary(graph, UnaryKind::Relu, a));
  Executor kept(make_plan(graph.clone(), {&device}, {.keep_values = true}), states);
  kept.set_input("x", filled({4}, 3));
  kept.run();
  EXPECT_THAT(floats(kept.output("a")), Each(-3));
  EXPECT_THAT(floats(kept.output("y")), Each(0));
  Executor plain(make_plan(graph.clone(), {&device}), states);
  EXPECT_THAT(message_of<InvalidArgument>([&] { plain.output("a"); }),
              HasSubstr("no output \"a\"; its outputs: y"));
}

TEST_F(ExecutorTest, wrong_inputs_and_a_store_of_another_device_are_refused) {
  Executor executor(make_plan(counter(), {&device}), states);
  EXPECT_THAT(message_of<InvalidArgument>([&] { executor.set_input("z", filled({4}, 0)); }),
              HasSubstr("no input \"z\"; its inputs: x"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { executor.set_input("x", filled({5}, 0)); }),
              HasSubstr("\"x\" is f32[4], got f32[5]"));
  EXPECT_THAT(
      message_of<InvalidArgument>([&] { Executor(make_plan(counter(), {&device}), small_states); }),
      HasSubstr("the state store is on toy, the plan's first device is cpu"));
}

TEST_F(ExecutorTest, empty_tensors_pass_through) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {0, 4}});
  graph.mark_output("y", unary(graph, UnaryKind::Neg, x));
  graph.add_state("s", filled({0}, 0));
  Executor executor(make_plan(std::move(graph), {&small}), small_states);
  EXPECT_EQ(executor.plan().arena_bytes[0], 128u);  // scratch
  executor.set_input("x", filled({0, 4}, 0));
  executor.run();
  EXPECT_EQ(executor.run_until_not_finite(), std::nullopt);
  EXPECT_EQ(executor.output("y").shape(), Shape({0, 4}));
}

TEST_F(ExecutorTest, an_unread_input_can_be_set_and_marked) {
  Graph graph;
  graph.mark_output("y", graph.add_input("x", {DType::F32, {4}}));
  Executor executor(make_plan(std::move(graph), {&small, &device}), small_states);
  executor.set_input("x", filled({4}, 7));
  executor.run();
  EXPECT_THAT(floats(executor.output("y")), Each(7));
}

TEST_F(ExecutorTest, allocated_bytes_count_all_but_the_states) {
  Executor executor(make_plan(counter(), {&device}), states);
  EXPECT_EQ(executor.allocated_bytes(), 64u + 64u + 128u);
  EXPECT_EQ(executor.plan().total_bytes(0), 64u + 64u + 128u + 16u);
}

TEST_F(ExecutorTest, a_borrower_lives_in_its_lenders_arena) {
  Executor lender(make_plan(counter(), {&device}), states);
  const auto before = device.allocated();
  Executor borrower(make_plan(counter(), {&device}), states, &lender);
  EXPECT_EQ(device.allocated(), before);
  for (auto* executor : {&lender, &borrower, &lender}) {
    executor->set_input("x", filled({4}, 1));
    executor->run();
  }
  EXPECT_THAT(floats(lender.output("y")), Each(13));
  Executor alone(make_plan(counter(), {&device}), states);
  EXPECT_EQ(device.allocated(), before + 1);
}

}  // namespace
}  // namespace triptych
