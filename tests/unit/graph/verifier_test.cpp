// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/ops/optimizers.h"
#include "core/ops/reshape.h"
#include "tests/unit/graph/example_graphs.h"

namespace triptych::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A graph taken apart, so that it can be broken.
struct Parts {
  explicit Parts(const Graph& graph)
      : nodes(graph.nodes()), values(graph.values()), outputs(graph.outputs()) {}

  void expect_failure(const std::string& message) const {
    EXPECT_THAT([&] { verify(nodes, values, outputs); },
                ThrowsMessage<InvalidArgument>(HasSubstr(message)));
  }

  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<NamedValue> outputs;
};

void expect_failure(const Graph& graph, const std::string& message) {
  Parts(graph).expect_failure(message);
}

/// A state "w" with its gradient as input "g", and the operands of its SGD step.
struct SgdExample {
  Graph graph;
  ValueId rate = graph.add_input("rate", {DType::F32, {}});
  ValueId step = graph.add_state("step", Tensor({DType::I64, {}}));
  ValueId w = graph.add_state("w", Tensor({DType::F32, {4}}));
  ValueId g = graph.add_input("g", {DType::F32, {4}});

  /// Adds the step. Returns the updated step and w.
  std::vector<ValueId> update(ValueId step_value, ValueId weight, const std::string& name = "sgd") {
    const ValueId inputs[] = {rate, step_value, weight, g};
    return graph.add_node(make_op(SgdUpdate{}), inputs, name);
  }
  ValueId relu(ValueId x, const std::string& name = "relu") {
    return emit(graph, make_op(Unary(UnaryKind::Relu)), {x}, name);
  }
};

TEST(Verifier, accepts_a_valid_graph) { EXPECT_NO_THROW(verify(conv_norm_relu(true))); }

TEST(Verifier, refuses_values_out_of_place) {
  Parts parts(conv_norm_relu(false));
  std::swap(parts.values[0], parts.values[1]);
  parts.expect_failure("value \"conv.weight\" has number 1, its place in the list is 0");
}

TEST(Verifier, refuses_two_values_of_one_name) {
  Parts parts(conv_norm_relu(false));
  parts.values[1].name = "x";
  parts.expect_failure("two values are named \"x\"");
}

TEST(Verifier, refuses_values_and_nodes_without_a_name) {
  Parts values(conv_norm_relu(false)), nodes(conv_norm_relu(false));
  values.values[1].name = "";
  values.expect_failure("value 1 has no name");
  nodes.nodes[0].name = "";
  nodes.expect_failure("node 0 has no name");
}

TEST(Verifier, refuses_an_activation_without_producer) {
  Parts parts(conv_norm_relu(false));
  parts.values[parts.nodes[0].outputs[0].index()].producer = NodeId{};
  parts.expect_failure("no node defines the activation \"conv\"");
}

TEST(Verifier, refuses_data_of_another_shape) {
  Parts parts(conv_norm_relu(false));
  parts.values[1].data = parts.values[3].data;
  parts.expect_failure("\"conv.weight\" is f32[4, 3, 3, 3], its data is f32[4]");
}

TEST(Verifier, refuses_a_state_without_data) {
  Parts parts(conv_norm_relu(false));
  parts.values[1].data = nullptr;
  parts.expect_failure("its data is missing");
}

TEST(Verifier, refuses_nodes_out_of_place) {
  Parts parts(conv_norm_relu(false));
  std::swap(parts.nodes[0], parts.nodes[1]);
  parts.expect_failure("has number 1, its place in the order is 0 (node \"norm\")");
}

TEST(Verifier, refuses_two_nodes_of_one_name) {
  Parts parts(conv_norm_relu(false));
  parts.nodes[2].name = "norm";
  parts.expect_failure("another node has the same name (node \"norm\")");
}

TEST(Verifier, refuses_an_input_out_of_range) {
  Parts parts(conv_norm_relu(false));
  parts.nodes[2].inputs[0] = ValueId{99};
  parts.expect_failure("input 0 is value number 99, out of range (node \"relu\")");
}

TEST(Verifier, refuses_reading_before_definition) {
  Parts parts(conv_norm_relu(false));
  parts.nodes[1].inputs[0] = parts.nodes[2].outputs[0];
  parts.expect_failure("input 0 (\"relu\") is read before it is defined (node \"norm\")");
}

TEST(Verifier, refuses_a_wrong_number_of_outputs) {
  Parts parts(conv_norm_relu(false));
  parts.nodes[2].outputs.clear();
  parts.expect_failure("has 0 outputs, the operator gives 1 (node \"relu\")");
}

TEST(Verifier, refuses_an_output_that_another_node_defines) {
  Parts parts(conv_norm_relu(false));
  parts.nodes[2].outputs[0] = parts.nodes[1].outputs[0];
  parts.expect_failure("output 0 (\"norm\") is defined elsewhere (node \"relu\")");
}

TEST(Verifier, refuses_a_spec_that_the_shape_rule_does_not_give) {
  Parts parts(conv_norm_relu(false));
  parts.values[parts.nodes[2].outputs[0].index()].spec.shape = Shape{5};
  parts.expect_failure("output 0 (\"relu\") is f32[5], the shape rule gives f32[2, 4, 6, 6]");
}

TEST(Verifier, names_the_node_whose_inputs_do_not_fit) {
  Parts parts(conv_norm_relu(false));
  parts.nodes[1].inputs[1] = parts.nodes[0].inputs[0];
  parts.expect_failure("(node \"norm\")");
}

TEST(Verifier, refuses_two_outputs_of_one_name) {
  Parts parts(conv_norm_relu(false));
  parts.outputs.push_back(parts.outputs[0]);
  parts.expect_failure("two outputs are named \"y\"");
}

TEST(Verifier, refuses_an_output_out_of_range) {
  Parts parts(conv_norm_relu(false));
  parts.outputs[0].value = ValueId{};
  parts.expect_failure("output \"y\" is value number -1, out of range");
}

TEST(Verifier, accepts_reading_the_new_value_of_a_state) {
  SgdExample example;
  const auto updated = example.update(example.step, example.w);
  example.graph.mark_output("y", example.relu(updated[1]));
  EXPECT_NO_THROW(verify(example.graph));
}

TEST(Verifier, accepts_a_chain_of_updates) {
  SgdExample example;
  const auto updated = example.update(example.step, example.w);
  example.update(updated[0], updated[1], "again");
  EXPECT_NO_THROW(verify(example.graph));
}

TEST(Verifier, refuses_updating_what_is_not_a_state) {
  SgdExample example;
  example.update(example.step, example.relu(example.g));
  expect_failure(example.graph, "\"relu\" is updated in place, so it must be a state");
}

TEST(Verifier, refuses_reading_the_old_value_after_an_update) {
  SgdExample example;
  example.update(example.step, example.w);
  example.relu(example.w);
  expect_failure(example.graph,
                 "input 0 reads the old value of \"w\" after node \"sgd\" updated it in place "
                 "(node \"relu\")");
}

TEST(Verifier, refuses_reading_a_view_of_the_old_value_after_an_update) {
  SgdExample example;
  const auto view = emit(example.graph, make_op(Identity{}), {example.w}, "view");
  example.update(example.step, example.w);
  example.relu(view);
  expect_failure(example.graph, "input 0 reads the old value of \"view\"");
}

TEST(Verifier, refuses_updating_one_value_twice) {
  SgdExample example;
  const auto updated = example.update(example.step, example.w);
  example.update(updated[0], example.w, "again");
  expect_failure(example.graph, "reads the old value of \"w\" after node \"sgd\"");
}

TEST(Verifier, refuses_a_node_that_reads_its_state_twice) {
  SgdExample example;
  example.g = example.w;
  example.update(example.step, example.w);
  expect_failure(example.graph, "reads the state \"w\" twice and updates it (node \"sgd\")");
}

TEST(Verifier, refuses_an_output_that_is_an_old_value) {
  SgdExample example;
  example.update(example.step, example.w);
  example.graph.mark_output("w", example.w);
  expect_failure(example.graph, "output \"w\" is the old value of \"w\"");
}

}  // namespace
}  // namespace triptych::testing
