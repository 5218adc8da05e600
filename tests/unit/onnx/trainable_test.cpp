// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/trainable.h"

#include <gmock/gmock.h>

#include "core/onnx/model_reader.h"
#include "core/onnx/model_writer.h"
#include "tests/unit/onnx/samples.h"

namespace triptych::onnx {
namespace {

using test::Sample;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr auto kParameter = StateRole::Parameter;
constexpr auto kStatistic = StateRole::Statistic;

Model loaded(const Sample& sample) {
  const test::TemporaryFolder folder;
  return load_model(sample.save(folder / "m.onnx"));
}

TrainableModel trainable(const Sample& sample, const std::vector<std::string>& frozen = {}) {
  return make_trainable(loaded(sample), frozen);
}

/// Normalises its input, convolves, normalises the batch and scales, with one node each.
Sample network() {
  Sample sample(15);
  sample.input("x", {-1, 1, 4, 4}).node("Sub", {"x", "center"}, {"a"});
  sample.node("Conv", {"a", "w", "b"}, {"h"});
  sample.node("BatchNormalization", {"h", "scale", "shift", "mean", "variance"}, {"n"});
  sample.node("Mul", {"n", "half"}, {"m"}).node("Add", {"m", "place"}, {"y"}).output("y");
  sample.floats("center", {1, 1, 1, 2}, {0.5F, 0.25F});
  sample.floats("w", {1, 1, 1, 1}, {2});
  sample.floats("b", {1}, {1});
  for (const auto* name : {"scale", "shift", "mean", "variance"}) sample.floats(name, {1}, {1});
  sample.floats("half", {}, {0.5F});
  sample.floats("place", {4, 1}, {1, 2, 3, 4});
  return sample;
}

TEST(Trainable, finds_weights_and_statistics_in_order_of_use) {
  const auto found = trainable(network());
  EXPECT_THAT(found.states,
              ElementsAre(Pair("w", kParameter), Pair("b", kParameter), Pair("scale", kParameter),
                          Pair("shift", kParameter), Pair("mean", kStatistic),
                          Pair("variance", kStatistic), Pair("place", kParameter)));
  EXPECT_EQ(found.batch_normalizations, 1);
}

TEST(Trainable, frozen_names_stay_and_so_does_a_normalisation_with_one_of_them) {
  const auto found = trainable(network(), {"pl*", "varia*"});
  EXPECT_THAT(found.states, ElementsAre(Pair("w", kParameter), Pair("b", kParameter),
                                        Pair("scale", kParameter), Pair("shift", kParameter)));
  EXPECT_THROW(trainable(network(), {"nothing*"}), InvalidArgument);
  EXPECT_THROW(trainable(network(), {"*"}), UnsupportedError);
}

void add_constant(Sample& sample, const std::string& name, const std::vector<float>& values) {
  sample.node("Constant", {}, {name});
  auto& attribute = sample.attribute("value", 4);
  attribute.mutable_t()->set_data_type(test::kFloat);
  attribute.mutable_t()->add_dims(std::ssize(values));
  for (const auto value : values) attribute.mutable_t()->add_float_data(value);
}

/// x + alpha tanh(x w), scaled by e^s, with a number of the code: an initialiser, or a node.
Sample scaled_network(bool number_is_node = false) {
  Sample sample(15);
  if (number_is_node) add_constant(sample, "width", {2});
  sample.input("x", {-1, 2}).node("MatMul", {"x", "w"}, {"h"}).node("Tanh", {"h"}, {"t"});
  sample.node("Mul", {"t", "alpha"}, {"a"}).node("Add", {"x", "a"}, {"r"});
  sample.node("Exp", {"s"}, {"e"}).node("Mul", {"r", "e"}, {"m"});
  sample.node("Div", {"m", "width"}, {"y"}).output("y");
  sample.floats("w", {2, 2}, {1, 2, 3, 4});
  sample.floats("alpha", {}, {0});
  sample.floats("s", {1}, {1});
  if (!number_is_node) sample.floats("width", {}, {2});
  return sample;
}

TEST(Trainable, single_numbers_are_learnt_where_the_codes_numbers_are_nodes) {
  auto sample = scaled_network();
  EXPECT_THAT(trainable(sample).states, ElementsAre(Pair("w", kParameter)));
  EXPECT_THAT(trainable(sample).kept, ElementsAre("alpha", "s", "width"));
  EXPECT_THAT(trainable(scaled_network(true)).states,
              ElementsAre(Pair("w", kParameter), Pair("alpha", kParameter), Pair("s", kParameter)));
  sample.model.set_producer_name("pytorch");
  const auto found = trainable(sample);
  EXPECT_THAT(found.states,
              ElementsAre(Pair("w", kParameter), Pair("alpha", kParameter), Pair("s", kParameter)));
  EXPECT_THAT(found.operands, ElementsAre("alpha", "s"));
  EXPECT_THAT(found.kept, ElementsAre("width"));
  EXPECT_THAT(trainable(sample, {"alpha"}).operands, ElementsAre("s"));
  const test::TemporaryFolder folder;
  test::put_file(folder / "again.onnx", encode_model(found.model));
  EXPECT_EQ(make_trainable(load_model(folder / "again.onnx")).states, found.states);
  sample.model.set_ir_version(10);  // written by the exporter that lifts numbers, kinds lost
  EXPECT_THAT(trainable(sample).states, ElementsAre(Pair("w", kParameter)));
}

TEST(Trainable, names_an_initialiser_that_several_layers_read) {
  Sample sample;
  sample.input("x", {-1, 2}).node("MatMul", {"x", "w"}, {"h"}).node("Add", {"h", "b"}, {"a"});
  sample.node("MatMul", {"a", "v"}, {"g"}).node("Add", {"g", "b"}, {"y"}).output("y");
  for (const auto* name : {"w", "v"}) sample.floats(name, {2, 2}, {1, 2, 3, 4});
  sample.floats("b", {2}, {0, 0});
  EXPECT_THAT(trainable(sample).shared, ElementsAre("b"));
  EXPECT_THAT(trainable(network()).shared, IsEmpty());
}

TEST(Trainable, a_weight_is_found_behind_what_moves_it) {
  Sample sample;
  sample.input("x", {-1, 2}).node("Transpose", {"w"}, {"t"}).node("MatMul", {"x", "t"}, {"y"});
  sample.output("y");
  sample.floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(trainable(sample).states, ElementsAre(Pair("w", kParameter)));
}

/// Exporters that fold nothing reorder the gates of recurrent layers so.
TEST(Trainable, a_weight_is_found_behind_what_is_computed_of_it_alone) {
  Sample sample;
  sample.input("x", {-1, 2}).node("Slice", {"w", "one", "three"}, {"back"});
  sample.node("Slice", {"w", "zero", "one"}, {"front"});
  sample.node("Concat", {"back", "front"}, {"turned"});
  sample.attribute("axis", 2).set_i(0);
  sample.node("ReduceMean", {"turned"}, {"mean"}).node("Sub", {"turned", "mean"}, {"centred"});
  sample.node("Mul", {"centred", "half"}, {"scaled"}).node("Transpose", {"scaled"}, {"t"});
  sample.node("MatMul", {"x", "t"}, {"y"}).output("y");
  sample.floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  sample.floats("half", {1}, {0.5F});
  sample.constants("zero", {0});
  sample.constants("one", {1});
  sample.constants("three", {3});
  EXPECT_THAT(trainable(sample).states, ElementsAre(Pair("w", kParameter)));
}

TEST(Trainable, operands_are_told_and_masks_and_what_divides_are_kept) {
  Sample sample;
  sample.input("x", {-1, 2}).node("Div", {"x", "range"}, {"a"}).node("MatMul", {"a", "w"}, {"b"});
  sample.node("Add", {"b", "bias"}, {"c"}).node("Mul", {"c", "gate"}, {"d"});
  sample.node("Add", {"d", "mask"}, {"e"}).node("Concat", {"e", "token"}, {"y"}).output("y");
  sample.attribute("axis", 2).set_i(0);
  sample.floats("range", {2}, {2, 4});
  sample.floats("w", {2, 2}, {1, 2, 3, 4});
  sample.floats("bias", {2}, {1, 2});
  for (const auto* name : {"gate", "token"}) sample.floats(name, {1, 2}, {1, 2});
  sample.floats("mask", {1, 2}, {0, -std::numeric_limits<float>::infinity()});
  const auto found = trainable(sample, {"token"});
  EXPECT_THAT(found.states, ElementsAre(Pair("w", kParameter), Pair("bias", kParameter),
                                        Pair("gate", kParameter)));
  EXPECT_THAT(found.operands, ElementsAre("gate"));
  EXPECT_THAT(found.kept, ElementsAre("mask", "range")) << "the token is, too, as was asked for";
  EXPECT_THAT(trainable(sample).operands, ElementsAre("gate", "token"));
}

TEST(Trainable, nodes_hold_weights_only_where_no_initialiser_does) {
  for (const bool initialiser : {true, false}) {
    Sample sample;
    add_constant(sample, "ones", {1, 1});
    add_constant(sample, "zeros", {0, 0});
    sample.input("x", {-1, 2}).node("LayerNormalization", {"x", "ones", "zeros"}, {"n"});
    sample.node("PRelu", {"n", initialiser ? "w" : "ones"}, {"y"}).output("y");
    if (initialiser) sample.floats("w", {2}, {1, 2});
    const auto states = trainable(sample).states;
    if (initialiser) {
      EXPECT_THAT(states, ElementsAre(Pair("w", kParameter)));
    } else {
      EXPECT_THAT(states, ElementsAre(Pair("ones", kParameter), Pair("zeros", kParameter)));
    }
  }
}

TEST(Trainable, nodes_hold_weights_beside_an_initialiser_that_is_none) {
  Sample sample;
  add_constant(sample, "ones", {1, 1});
  add_constant(sample, "zeros", {0, 0});
  sample.input("x", {-1, 2}).node("Div", {"x", "range"}, {"d"});
  sample.node("LayerNormalization", {"d", "ones", "zeros"}, {"y"}).output("y");
  sample.floats("range", {2}, {2, 4});
  EXPECT_THAT(trainable(sample).states,
              ElementsAre(Pair("ones", kParameter), Pair("zeros", kParameter)));
}

TEST(Trainable, a_table_of_whole_numbers_is_not_learnt) {
  Sample sample;
  sample.input("i", {2}, test::kInt64).node("Gather", {"table", "i"}, {"j"});
  sample.node("Gather", {"w", "j"}, {"y"}).output("y");
  sample.constants("table", {1, 0});
  sample.floats("w", {2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(trainable(sample).states, ElementsAre(Pair("w", kParameter)));
}

TEST(Trainable, groups_that_are_normalised_as_instances_have_no_weights_of_their_own) {
  Sample sample;
  sample.input("x", {-1, 4, 2, 2}).node("Reshape", {"x", "to"}, {"g"});
  sample.node("InstanceNormalization", {"g", "ones", "zeros"}, {"n"});
  sample.node("Reshape", {"n", "back"}, {"r"}).node("Mul", {"r", "w"}, {"y"}).output("y");
  sample.constants("to", {0, 2, -1});
  sample.constants("back", {0, 4, 2, 2});
  sample.floats("ones", {2}, {1, 1});
  sample.floats("zeros", {2}, {0, 0});
  sample.floats("w", {4, 1, 1}, {1, 2, 3, 4});
  EXPECT_THAT(trainable(sample).states, ElementsAre(Pair("w", kParameter)));
}

TEST(Trainable, what_exporters_share_through_identities_is_learnt_apart) {
  Sample sample;
  sample.input("x", {-1, 2}).node("Identity", {"w"}, {"w2"}).node("MatMul", {"x", "w"}, {"h"});
  sample.node("MatMul", {"h", "w2"}, {"i"}).node("MatMul", {"i", "w"}, {"y"}).output("y");
  sample.floats("w", {2, 2}, {1, 2, 3, 4});
  const auto found = trainable(sample);
  EXPECT_THAT(found.states, ElementsAre(Pair("w", kParameter), Pair("w2", kParameter)));
  EXPECT_EQ(found.model.nodes.size(), 3u);
}

TEST(Trainable, normalisations_that_share_statistics_follow_their_own) {
  auto sample = network();
  sample.graph().mutable_output(0)->set_name("z");
  sample.node("BatchNormalization", {"y", "scale", "shift", "mean", "variance"}, {"z"});
  const auto states = trainable(sample).states;
  EXPECT_EQ(std::ranges::count(states, kStatistic, &std::pair<std::string, StateRole>::second), 4);
}

TEST(Trainable, the_training_form_becomes_the_form_for_inference) {
  auto sample = network();
  auto& norm = *sample.graph().mutable_node(2);
  norm.add_output("next_mean");
  norm.add_output("next_variance");
  auto& mode = *norm.add_attribute();
  mode.set_name("training_mode");
  mode.set_type(2);
  mode.set_i(1);
  const auto found = trainable(sample);
  EXPECT_EQ(found.model.nodes[2].outputs.size(), 1u);
  EXPECT_THAT(found.model.nodes[2].attributes, IsEmpty());
  sample.node("Add", {"y", "next_mean"}, {"z"});
  sample.graph().mutable_output(0)->set_name("z");
  EXPECT_THROW(trainable(sample), UnsupportedError);
}

TEST(Trainable, the_last_activation_and_other_outputs_are_left_out) {
  auto sample = network();
  sample.node("Relu", {"h"}, {"other"}).node("Sigmoid", {"y"}, {"p"});
  sample.graph().mutable_output(0)->set_name("p");
  sample.output("other");
  const auto found = trainable(sample);
  EXPECT_EQ(found.last_activation, "Sigmoid");
  EXPECT_EQ(found.outputs_in_file, 2u);
  EXPECT_EQ(found.model.outputs.front().name, "y");
  EXPECT_EQ(found.model.nodes.size(), 5u);
  for (const auto* op : {"Sigmoid", "Softmax", "LogSoftmax", "Relu"}) {
    sample.graph().mutable_node(6)->set_op_type(op);
    EXPECT_EQ(trainable(sample).last_activation, op == std::string("Relu") ? "" : op);
  }
  sample.graph().mutable_node(6)->set_op_type("Sigmoid");
  sample.graph().mutable_node(6)->set_domain("com.example");
  EXPECT_EQ(trainable(sample).last_activation, "") << "another domain's operator";
}

TEST(Trainable, nothing_to_learn_and_parameters_of_16_bits_are_refused) {
  Sample sample;
  sample.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_THROW(trainable(sample), UnsupportedError);
  for (const int type : {10, 16}) {
    Sample half;
    half.input("x", {2, 2}, type).node("MatMul", {"x", "w"}, {"y"}).output("y", type);
    auto& weight = half.initializer("w", {2, 2}, type);
    for (int i = 0; i < 4; ++i) weight.add_int32_data(0);
    EXPECT_THROW(trainable(half), UnsupportedError) << type;
  }
}

/// A run folder stores the network, and builds it again.
TEST(Trainable, what_is_written_becomes_the_same_again) {
  auto sample = network();
  add_constant(sample, "c", {3, 4});
  sample.node("Reshape", {"y", "to"}, {"r"}).node("Mul", {"r", "c"}, {"z"});
  sample.constants("to", {-1, 2});
  sample.graph().mutable_output(0)->set_name("z");
  const auto first = trainable(sample);
  EXPECT_EQ(first.states.back().first, "place") << "numbers that nodes hold scale";
  const test::TemporaryFolder folder;
  test::put_file(folder / "m.onnx", encode_model(first.model));
  const auto second = make_trainable(load_model(folder / "m.onnx"));
  EXPECT_EQ(second.states, first.states);
  EXPECT_EQ(encode_model(second.model), encode_model(first.model));
}

}  // namespace
}  // namespace triptych::onnx
