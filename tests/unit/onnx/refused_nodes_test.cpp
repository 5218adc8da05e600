// Nodes with attributes or operands that their operator does not have: each is refused with the
// reason, and none becomes another computation.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::expect_refused;
using test::Integers;
using test::kInt32;
using test::kInt64;
using test::kInt8;
using test::kUint8;
using test::Names;
using test::one_node;
using test::Sample;

/// A node of inputs "0", "1", ... of these sizes.
Sample node_of(const std::string& op, const std::vector<Integers>& inputs, std::int64_t opset = 13,
               int type = test::kFloat) {
  Sample sample(opset);
  Names names;
  for (const auto& sizes : inputs) {
    names.push_back(std::to_string(names.size()));
    sample.input(names.back(), sizes, type);
  }
  return sample.node(op, names, {"y"}).output("y", type);
}

TEST(RefusedNodes, attributes_of_another_type_or_without_a_value) {
  for (const auto& [name, message] : {std::pair("alpha", "attribute alpha must be a number")}) {
    auto leaky = one_node("LeakyRelu", {2});
    leaky.integer(name, 1);
    expect_refused(leaky, message);
  }
  auto gelu = one_node("Gelu", {2}, 20);
  gelu.integer("approximate", 1);
  expect_refused(gelu, "attribute approximate must be a text");
  auto transpose = one_node("Transpose", {2});
  transpose.integer("perm", 0);
  expect_refused(transpose, "attribute perm must be a list of integers");
  auto softmax = one_node("Softmax", {2});
  softmax.text("axis", "0");
  expect_refused(softmax, "attribute axis must be an integer");
  auto unknown_gelu = one_node("Gelu", {2}, 20);
  unknown_gelu.text("approximate", "sigmoid");
  expect_refused(unknown_gelu, "approximate is \"sigmoid\"");
  auto cast = one_node("Cast", {2});
  expect_refused(cast, "attribute to is missing");
  expect_refused(one_node("Concat", {2}), "attribute axis is missing");
  expect_refused(one_node("Unsqueeze", {2}), "its axes are missing");
}

TEST(RefusedNodes, element_types_that_are_unknown_or_missing_are_told_apart) {
  const auto cast_to = [](std::int64_t type) {
    auto cast = one_node("Cast", {2});
    return cast.integer("to", type);
  };
  EXPECT_THROW(test::imported(cast_to(99)), IoError);
  EXPECT_THROW(test::imported(cast_to(0)), IoError);
  EXPECT_THROW(test::imported(cast_to(8)), UnsupportedError);
}

TEST(RefusedNodes, known_inputs_of_another_shape_or_type) {
  const auto reshape = [](const Integers& sizes, int type) {
    Sample sample;
    sample.input("x", {2}).node("Reshape", {"x", "to"}, {"y"}).output("y");
    auto& to = sample.initializer("to", sizes, type);
    if (type == kInt64) to.add_int64_data(2);
    if (type == kInt32) to.add_int32_data(2);
    if (type == test::kFloat) to.add_float_data(2);
    return sample;
  };
  EXPECT_NO_THROW(test::imported(reshape({1}, kInt64)));
  EXPECT_NO_THROW(test::imported(reshape({1}, kInt32)));
  expect_refused(reshape({1, 1}, kInt64), "input 1 is not a list");
  expect_refused(reshape({1}, test::kFloat), "input 1 must be int64");
  Sample sums;
  sums.input("x", {2}).node("CumSum", {"x", "axis"}, {"y"}).output("y");
  auto two = sums, half = sums;
  two.constants("axis", {0, 0});
  expect_refused(two, "input 1 is not one number");
  half.floats("axis", {}, {0.5F});
  expect_refused(half, "input 1 is not a whole number");
}

TEST(RefusedNodes, inputs_that_nobody_asks_for_unless_they_are_left_out) {
  Sample sample;
  sample.input("x", {2}).node("Relu", {"x", ""}, {"y"}).output("y");
  EXPECT_NO_THROW(test::imported(sample));
  sample.graph().mutable_node(0)->set_input(1, "x");
  expect_refused(sample, "input 1 is not supported");
}

TEST(RefusedNodes, outputs_of_another_type_and_outputs_that_are_not_computed) {
  auto other = one_node("Relu", {2});
  other.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(kInt64);
  expect_refused(other, "output \"y\" is i64 in the model, and computed as f32");
  Sample more;
  more.input("x", {2}).node("Relu", {"x"}, {"y", "z"}).output("y");
  expect_refused(more, "output 1 (\"z\") is not supported");
}

TEST(RefusedNodes, arithmetic_of_two_types) {
  for (const char* op : {"Add", "Less", "Equal"}) {
    Sample sample;
    sample.input("x", {2}, kUint8).input("z", {2}, kInt8).node(op, {"x", "z"}, {"y"});
    sample.output("y", kUint8);
    expect_refused(sample, "its dtype must be one of");
    EXPECT_THROW(test::imported(sample), InvalidArgument) << op;
  }
  expect_refused(one_node("Sum", {2}).node("Sum", {}, {"z"}), "it has no input");
}

TEST(RefusedNodes, broadcasts_of_old_that_do_not_fit) {
  const auto old = [](const Integers& a, const Integers& b, std::int64_t broadcast,
                      std::optional<std::int64_t> axis = {}) {
    auto sample = node_of("Add", {a, b}, 6);
    sample.integer("broadcast", broadcast);
    if (axis) sample.integer("axis", *axis);
    return sample;
  };
  EXPECT_NO_THROW(test::imported(old({2, 3}, {2, 3}, 0)));
  expect_refused(old({2, 3}, {3}, 0), "it does not broadcast");
  expect_refused(old({3}, {2, 3}, 1), "it does not broadcast");
  expect_refused(old({2, 3}, {3}, 1, -1), "its axis is out of range");
  expect_refused(old({2, 3}, {3}, 1, 2), "its axis is out of range");
  expect_refused(old({2, 3}, {3}, 1, 0), "");
}

TEST(RefusedNodes, constants_without_one_kind_or_size) {
  Sample empty;
  empty.node("Constant", {}, {"y"}).output("y");
  expect_refused(empty, "it has no value of a kind that is supported");
  Sample filled;
  filled.node("ConstantOfShape", {"sizes"}, {"y"}).output("y").constants("sizes", {2});
  auto& value = *filled.attribute("value", 4).mutable_t();
  value.set_data_type(test::kFloat);
  value.add_dims(2);
  value.add_float_data(1);
  value.add_float_data(2);
  expect_refused(filled, "attribute value is not one element");
  Sample range;
  range.floats("a", {}, {0});
  range.initializer("b", {}, kInt64).add_int64_data(1);
  range.floats("c", {}, {1});
  range.node("Range", {"a", "b", "c"}, {"y"}).output("y");
  expect_refused(range, "its inputs have several types");
}

TEST(RefusedNodes, convolutions) {
  const Integers volume = {1, 1, 3, 2, 2}, kernel = {1, 1, 2, 1, 1};
  EXPECT_NO_THROW(test::imported(node_of("Conv", {volume, kernel})));
  for (const char* op : {"Conv", "ConvTranspose"}) {
    expect_refused(node_of(op, {{1, 2}, {1, 2}}), "input 0 has 2 dimensions; 3, 4 and 5");
    const Integers six(6, 1);
    expect_refused(node_of(op, {six, six}), "input 0 has 6 dimensions; 3, 4 and 5");
    expect_refused(node_of(op, {volume, {1, 1, 2, 1}}), "another number of dimensions");
    expect_refused(node_of(op, {{0, 1, 4, 4}, {1, 1, 2, 2}}), "an operand is empty");
    expect_refused(node_of(op, {{1, 1, 4, 4}, {0, 1, 2, 2}}), "an operand is empty");
    auto other_kernel = node_of(op, {volume, kernel});
    other_kernel.integers("kernel_shape", {1, 1, 1});
    expect_refused(other_kernel, "kernel_shape is not that of the weight");
  }
  expect_refused(node_of("Conv", {volume, {1, 1, 4, 1, 1}}), "the kernel is larger");
  const auto transposed = [&] { return node_of("ConvTranspose", {volume, kernel}); };
  expect_refused(transposed().integers("output_padding", {0, 0}), "output_padding does not fit");
  expect_refused(transposed().integers("output_shape", {4, 2, 2}), "are not supported in three");
  expect_refused(transposed().text("auto_pad", "VALID"), "are not supported in three dimensions");
  expect_refused(transposed().integers("pads", {2, 0, 0, 2, 0, 0}), "nothing is left");
}

TEST(RefusedNodes, windows_of_another_number_of_dimensions) {
  const char* message = "kernel_shape, strides, pads or dilations do not fit its dimensions";
  const auto volume = [] { return node_of("Conv", {{1, 1, 3, 2, 2}, {1, 1, 1, 1, 1}}); };
  expect_refused(volume().integers("strides", {1, 1}), message);
  expect_refused(volume().integers("dilations", {1, 1}), message);
  expect_refused(volume().integers("pads", {0, 0, 0, 0}), message);
  expect_refused(volume().text("auto_pad", "UPPER"), "auto_pad is unknown");
  const auto unpool = [](const Integers& kernel) {
    Sample sample;
    sample.input("x", {1, 1, 2, 2}).input("i", {1, 1, 2, 2}, kInt64);
    sample.node("MaxUnpool", {"x", "i"}, {"y"}).output("y");
    return sample.integers("kernel_shape", kernel);
  };
  EXPECT_NO_THROW(test::imported(unpool({2, 2})));
  expect_refused(unpool({2, 2, 2}), message);
}

TEST(RefusedNodes, poolings) {
  const auto pool = [](const char* op, const Integers& x, const Integers& kernel, int type) {
    auto sample = one_node(op, x, 12, type);
    return sample.integers("kernel_shape", kernel);
  };
  expect_refused(pool("MaxPool", {1, 2}, {}, test::kFloat), "input 0 has 2 dimensions; 3, 4 and 5");
  expect_refused(pool("MaxPool", Integers(6, 2), {1, 1, 1, 1}, test::kFloat), "has 6 dimensions");
  const auto with_places = [&](const Integers& x, const Integers& kernel, int type) {
    auto sample = pool("MaxPool", x, kernel, type);
    sample.graph().mutable_node(0)->add_output("places");
    return sample;
  };
  EXPECT_NO_THROW(test::imported(with_places({1, 1, 2, 2}, {2, 2}, test::kFloat)));
  expect_refused(with_places({1, 1, 2}, {2}, test::kFloat), "output 1 (Indices) of what is no");
  expect_refused(with_places({1, 1, 2, 2}, {2, 2}, kInt8), "output 1 (Indices) of what is no");
  expect_refused(one_node("GlobalAveragePool", {1, 2}), "its input has no spatial dimensions");
}

TEST(RefusedNodes, unpoolings) {
  const auto unpool = [](const Integers& places, const Integers& shape) {
    Sample sample;
    sample.input("x", {1, 1, 2, 2}).input("i", places, kInt64);
    sample.node("MaxUnpool", {"x", "i", "shape"}, {"y"}).output("y");
    sample.constants("shape", shape);
    return sample.integers("kernel_shape", {2, 2}).integers("strides", {2, 2});
  };
  EXPECT_NO_THROW(test::imported(unpool({1, 1, 2, 2}, {1, 1, 5, 4})));
  expect_refused(unpool({1, 1, 4, 1}, {1, 1, 4, 4}), "its operands do not fit");
  expect_refused(unpool({1, 1, 2, 2}, {1, 4, 4}), "output_shape does not fit its dimensions");
  expect_refused(unpool({1, 1, 2, 2}, {1, 1, 4, 3}), "output_shape is smaller");
}

/// An operator of x, constant integers and perhaps updates.
Sample indexed(const std::string& op, const Integers& x, const Integers& sizes,
               const Integers& indices, const Integers& updates = {}) {
  Sample sample;
  sample.input("x", x);
  auto& tensor = sample.initializer("i", sizes, kInt64);
  for (const auto index : indices) tensor.add_int64_data(index);
  Names inputs = {"x", "i"};
  if (!updates.empty()) {
    sample.input("u", updates);
    inputs.emplace_back("u");
  }
  return sample.node(op, inputs, {"y"}).output("y");
}

TEST(RefusedNodes, indices_that_do_not_fit) {
  EXPECT_NO_THROW(test::imported(indexed("GatherElements", {2, 2}, {1, 2}, {0, 1})));
  expect_refused(indexed("GatherElements", {2, 2}, {2}, {0, 1}), "different numbers of dimensions");
  expect_refused(indexed("GatherElements", {2, 1}, {1, 2}, {0, 1}), "its indices are larger");
  expect_refused(indexed("GatherND", {2, 2}, {}, {0}), "its indices do not fit the input");
  expect_refused(indexed("GatherND", {2, 2}, {1, 0}, {}), "its indices do not fit the input");
  expect_refused(indexed("GatherND", {2}, {1, 2}, {0, 0}), "its indices do not fit the input");
  expect_refused(indexed("ScatterElements", {2, 2}, {1, 2}, {0, 1}, {2, 1}),
                 "its updates do not fit its indices");
  expect_refused(indexed("ScatterND", {2, 2}, {1, 1}, {0}, {1, 1}), "its updates do not fit");
  const auto one_hot = [](std::int64_t depth, const Integers& sizes) {
    Sample sample;
    sample.input("x", {2}, kInt64).node("OneHot", {"x", "depth", "values"}, {"y"}).output("y");
    sample.constants("depth", {depth});
    const std::vector<float> values(static_cast<std::size_t>(Shape(sizes).elements()), 1);
    sample.floats("values", sizes, values);
    return sample;
  };
  EXPECT_NO_THROW(test::imported(one_hot(3, {2})));
  expect_refused(one_hot(0, {2}), "its operands do not fit");
  expect_refused(one_hot(3, {3}), "its operands do not fit");
  expect_refused(one_node("EyeLike", {2, 2, 2}), "its input is no matrix");
}

TEST(RefusedNodes, layouts) {
  auto dropout = one_node("Dropout", {2}, 6);
  expect_refused(dropout, "attribute is_test=0");
  EXPECT_NO_THROW(test::imported(dropout.integer("is_test", 1)));
  const auto split = [](std::int64_t opset, const Names& outputs, const Integers& sizes) {
    Sample sample(opset);
    sample.input("x", {5}).node("Split", {"x", sizes.empty() ? "" : "sizes"}, outputs);
    if (opset >= 18 && sizes.empty()) sample.integer("num_outputs", std::ssize(outputs));
    if (!sizes.empty()) sample.constants("sizes", sizes);
    for (const auto& output : outputs) sample.output(output);
    return sample;
  };
  EXPECT_NO_THROW(test::imported(split(18, {"a", "b"}, {})));
  expect_refused(split(13, {"a", "b"}, {}), "its outputs do not divide the input");
  expect_refused(split(13, {"a", "b"}, {1, 1, 3}), "it has another number of outputs");
  const auto blocks = [](const char* op, const Integers& x, std::int64_t size) {
    auto sample = one_node(op, x);
    return sample.integer("blocksize", size);
  };
  expect_refused(blocks("DepthToSpace", {4, 2, 2}, 2), "it takes [N, C, H, W] and a blocksize");
  expect_refused(blocks("DepthToSpace", {1, 4, 2, 2}, 0), "it takes [N, C, H, W] and a blocksize");
  expect_refused(blocks("DepthToSpace", {1, 6, 2, 2}, 2), "does not divide the channels");
  expect_refused(blocks("SpaceToDepth", {1, 1, 3, 2}, 2), "does not divide the image");
  expect_refused(blocks("SpaceToDepth", {1, 1, 2, 3}, 2), "does not divide the image");
  expect_refused(one_node("Trilu", {4}, 14), "its input has less than two dimensions");
  auto tile = indexed("Tile", {2, 2}, {1}, {2});
  expect_refused(tile, "repeats do not fit its dimensions");
  expect_refused(indexed("Tile", {2}, {1}, {-1}), "repeats are negative");
}

TEST(RefusedNodes, pads) {
  expect_refused(indexed("Pad", {2, 2}, {2}, {1, 1}), "its pads do not fit its axes");
  auto wrap = indexed("Pad", {2}, {2}, {1, 1});
  expect_refused(wrap.text("mode", "wrap"), "attribute mode: wrap");
  Sample exact(18);
  exact.input("x", {1}, kInt64).node("Pad", {"x", "pads", "value"}, {"y"}).output("y", kInt64);
  exact.constants("pads", {0, 1});
  exact.initializer("value", {}, kInt64).add_int64_data(1 << 24);
  EXPECT_NO_THROW(test::imported(exact));
  exact.graph().mutable_initializer(1)->set_int64_data(0, (1 << 24) + 1);
  expect_refused(exact, "its value is not exact in float32");
}

TEST(RefusedNodes, losses) {
  const auto loss = [](const Integers& x, const Integers& targets, const Integers& weights) {
    Sample sample;
    sample.input("x", x).input("t", targets, kInt64).input("w", weights);
    sample.node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"}).output("y");
    return sample;
  };
  EXPECT_NO_THROW(test::imported(loss({2, 3}, {2}, {3})));
  expect_refused(loss({2}, {1}, {2}), "its operands do not fit");
  expect_refused(loss({0, 3}, {0}, {3}), "its operands do not fit");
  expect_refused(loss({2, 3}, {3}, {3}), "its operands do not fit");
  expect_refused(loss({2, 3}, {2}, {2}), "its weights are not one per class");
  const auto step = [](std::int64_t tensors) {
    auto sample = node_of("Adagrad", std::vector<Integers>(static_cast<std::size_t>(tensors)));
    sample.graph().mutable_node(0)->set_domain("ai.onnx.preview.training");
    sample.model.add_opset_import()->set_domain("ai.onnx.preview.training");
    return sample;
  };
  EXPECT_NO_THROW(test::imported(step(5)));
  expect_refused(step(4), "it has another number of inputs");
  expect_refused(step(6), "it has another number of inputs");
}

TEST(RefusedNodes, normalizations_and_reductions) {
  const Integers one = {1};
  expect_refused(node_of("BatchNormalization", {{1, 1}, one, one, one}), "it takes x of two");
  expect_refused(node_of("BatchNormalization", {one, one, one, one, one}), "it takes x of two");
  const auto lrn = [](const Integers& x, std::int64_t size) {
    auto sample = one_node("LRN", x);
    return sample.integer("size", size);
  };
  expect_refused(lrn({2}, 1), "attribute size is out of range");
  expect_refused(lrn({1, 2}, 0), "attribute size is out of range");
  expect_refused(lrn({1, 2}, 6), "attribute size is out of range");
  auto norm = one_node("LpNormalization", {2});
  expect_refused(norm.integer("p", 3), "attribute p is neither 1 nor 2");
  expect_refused(one_node("ReduceMean", {0, 2}), "a reduction of nothing");
  expect_refused(one_node("ReduceMax", {0, 2}, 13, kInt32), "a reduction of nothing");
  expect_refused(one_node("ReduceMean", {2}, 13, kInt32), "input 0 is i32");
}

TEST(RefusedNodes, resizes) {
  const auto resize = [](const Integers& axes, const Integers& sizes) {
    Sample sample(18);
    sample.input("x", {1, 1, 2, 2}).node("Resize", {"x", "", "scales", "sizes"}, {"y"}).output("y");
    if (!axes.empty()) sample.integers("axes", axes);
    sample.floats("scales", {0}, {});
    sample.constants("sizes", sizes);
    return sample;
  };
  EXPECT_NO_THROW(test::imported(resize({2, 3}, {4, 4})));
  expect_refused(resize({2}, {4, 4}), "its axes do not fit its scales or sizes");
  expect_refused(resize({}, {}), "it has neither scales nor sizes");
  auto outside = resize({2, 3}, {4, 4});
  expect_refused(outside.text("mode", "linear").integer("exclude_outside", 1), "exclude_outside");
}

}  // namespace
}  // namespace triptych::onnx
