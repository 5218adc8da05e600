// Slices that their readers read in place, in the memory of the sliced value.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "core/runtime/executor.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using namespace testing_device;

const std::initializer_list<std::string_view> kSliceOps = {"Relu", "Neg", "Add", "Slice", "Concat"};

ValueId apply(Graph& graph, UnaryKind kind, ValueId x) {
  return graph.emit_one(make_op(Unary(kind)), {x});
}

struct Cut {
  std::int64_t start, end, axis = 1, step = 1;
};

ValueId cut_of(Graph& graph, ValueId x, const Cut& cut) {
  Slice op;
  op.starts = {cut.start};
  op.ends = {cut.end};
  op.axes = {cut.axis};
  op.steps = {cut.step};
  return graph.emit_one(make_op(op), {x});
}

class SlicesInPlace : public testing::Test {
 protected:
  /// y = -x, and for each cut the output "z0", "z1", ... = relu(slice(y)).
  void build(const std::vector<Cut>& cuts, const Shape& shape = {2, 4, 4, 4}) {
    y = apply(graph, UnaryKind::Neg, graph.add_input("x", {DType::F32, shape}));
    for (const auto& cut : cuts) {
      slices.push_back(cut_of(graph, y, cut));
      readers.push_back(apply(graph, UnaryKind::Relu, slices.back()));
      graph.mark_output("z" + std::to_string(slices.size() - 1), readers.back());
    }
  }

  /// How many Slice nodes run.
  std::ptrdiff_t copies(ReferenceDevice& on, const PlanOptions& options = {}) {
    const auto plan = make_plan(graph.clone(), {&on}, options);
    return std::ranges::count_if(plan.steps, [&](const Step& step) {
      return plan.graph.node(step.node).op->name() == "Slice" && step.entry != nullptr;
    });
  }

  Graph graph;
  ValueId y;
  std::vector<ValueId> slices, readers;
  ReferenceDevice dense{"dense", reference_kernels(kSliceOps)};
  ReferenceDevice strided{"strided", reference_kernels<true>(kSliceOps)};
};

TEST_F(SlicesInPlace, lie_in_their_input) {
  build({{0, 1}, {1, 4}});
  const auto plan = make_plan(graph.clone(), {&strided});
  const auto at = [&](ValueId value) { return plan.locations[0][value.index()].value(); };
  EXPECT_EQ(at(slices[1]).root, y);
  EXPECT_EQ(at(slices[0]).offset, at(y).offset);
  EXPECT_EQ(at(slices[1]).offset, at(y).offset + 64);
  EXPECT_EQ(at(slices[1]).outer_stride, 64);
  EXPECT_EQ(reason_of(plan, plan.steps[1]), "read in place, nothing runs");
  EXPECT_EQ(copies(strided), 0);
  EXPECT_EQ(copies(strided, {.concat_in_place = false}), 2);
}

TEST_F(SlicesInPlace, give_what_copies_give) {
  build({{0, 1}, {1, 4}, {1, 2, 0}});
  StateStore states(strided);
  Executor in_place(make_plan(graph.clone(), {&strided}), states);
  Executor copied(make_plan(graph.clone(), {&strided}, {.concat_in_place = false}), states);
  for (auto* executor : {&in_place, &copied}) {
    executor->set_input("x", filled({2, 4, 4, 4}, -60, 1));
    executor->run();
  }
  EXPECT_EQ(copies(strided), 0);
  for (const auto* name : {"z0", "z1", "z2"}) {
    const auto actual = in_place.output(name), expected = copied.output(name);
    EXPECT_TRUE(std::ranges::equal(actual.bytes(), expected.bytes())) << name;
  }
}

TEST_F(SlicesInPlace, are_copied_for_a_reader_that_needs_dense_operands) {
  build({{0, 1}, {1, 4}});
  EXPECT_EQ(copies(dense), 2);
}

TEST_F(SlicesInPlace, of_one_image_are_dense) {
  build({{0, 1}, {1, 4}}, {1, 4, 4, 4});
  EXPECT_EQ(copies(dense), 0);
}

TEST_F(SlicesInPlace, are_aligned_slabs) {
  for (const auto& [cut, shape, is_copied] :
       {std::tuple{Cut{1, 3}, Shape{2, 4, 4, 4}, 0}, std::tuple{Cut{1, 3}, Shape{2, 4, 4, 3}, 1},
        std::tuple{Cut{0, 4, 1, 2}, Shape{2, 4, 4, 4}, 1},
        std::tuple{Cut{3, 0, 1, -1}, Shape{2, 4, 4, 4}, 1},
        std::tuple{Cut{0, 2, 2}, Shape{2, 4, 4, 4}, 1},
        std::tuple{Cut{0, 2, 0}, Shape{4, 4, 4, 4}, 0},
        std::tuple{Cut{0, 4, 0, 2}, Shape{4, 4, 4, 4}, 0},
        std::tuple{Cut{3, 0, 0, -1}, Shape{4, 4, 4, 4}, 1},
        std::tuple{Cut{0, 0}, Shape{2, 4, 4, 4}, 1}}) {
    SCOPED_TRACE(to_string(shape) + " from " + std::to_string(cut.start));
    graph = Graph();
    build({cut}, shape);
    EXPECT_EQ(copies(strided), is_copied);
  }
}

TEST_F(SlicesInPlace, of_a_value_that_others_read_are_copied) {
  build({{0, 1}, {1, 4}});
  graph.mark_output("again", apply(graph, UnaryKind::Neg, y));
  EXPECT_EQ(copies(strided), 2);
}

TEST_F(SlicesInPlace, that_are_outputs_or_parts_of_a_concat_are_copied) {
  build({{0, 1}, {1, 4}});
  const auto whole = graph.clone();
  graph.mark_output("slice", slices[0]);
  EXPECT_EQ(copies(strided), 2);
  graph = whole.clone();
  Concat concat;
  concat.axis = 1;
  graph.mark_output("joined", graph.emit_one(make_op(concat), {slices[1], slices[0]}));
  EXPECT_EQ(copies(strided), 2);
}

TEST_F(SlicesInPlace, are_copied_for_another_device) {
  build({{0, 1}, {1, 4}});
  ReferenceDevice first("first", reference_kernels<true>({"Neg", "Slice"}));
  ReferenceDevice other("other", reference_kernels<true>({"Relu"}));
  const auto plan = make_plan(graph.clone(), {&first, &other});
  EXPECT_NE(plan.steps[1].entry, nullptr);
}

TEST_F(SlicesInPlace, are_neither_written_over_nor_written_over_the_input_of_their_whole) {
  auto x = apply(graph, UnaryKind::Relu, graph.add_input("x", {DType::F32, {2, 4, 4, 4}}));
  y = apply(graph, UnaryKind::Neg, x);  // may take the memory of x elsewhere
  const auto part = cut_of(graph, y, {0, 2});
  const auto reader = apply(graph, UnaryKind::Relu, part);
  graph.mark_output("z", reader);
  graph.mark_output("w", apply(graph, UnaryKind::Neg, cut_of(graph, y, {2, 4})));
  const auto plan = make_plan(graph.clone(), {&strided});
  const auto root = [&](ValueId value) { return plan.locations[0][value.index()]->root; };
  EXPECT_EQ(root(part), y);
  EXPECT_EQ(root(y), y);
  EXPECT_EQ(root(reader), reader);
}

}  // namespace
}  // namespace triptych
