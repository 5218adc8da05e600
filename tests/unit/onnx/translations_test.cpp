// Values of operators whose attributes and operator sets have several meanings.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::close_to;
using test::imported;
using test::Integers;
using test::kInt32;
using test::kInt64;
using test::kInt8;
using test::kUint8;
using test::one_node;
using test::output_of;
using test::outputs_of;
using test::Sample;
using ::testing::ElementsAre;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

TEST(Translations, constants_of_every_kind) {
  const auto constant = [](int type, const std::function<void(Sample&)>& set) {
    Sample sample;
    set(sample.node("Constant", {}, {"y"}));
    return output_of(sample.output("y", type), {});
  };
  EXPECT_THAT(constant(test::kFloat, [](Sample& s) { s.number("value_float", 0.5F); }),
              ElementsAre(0.5));
  EXPECT_THAT(constant(kInt64, [](Sample& s) { s.integer("value_int", 7); }), ElementsAre(7));
  const auto floats = [](Sample& s) {
    auto& attribute = s.attribute("value_floats", 6);
    for (const float value : {1.5F, 2.5F}) attribute.add_floats(value);
  };
  EXPECT_THAT(constant(test::kFloat, floats), ElementsAre(1.5, 2.5));
  EXPECT_THAT(constant(kInt64,
                       [](Sample& s) {
                         s.integers("value_ints", {3, 4});
                       }),
              ElementsAre(3, 4));
}

TEST(Translations, arithmetic_of_old_broadcasts_from_an_axis) {
  const auto add = [](std::optional<std::int64_t> axis, const Integers& b) {
    Sample sample(6);
    sample.input("x", {2, 3}).input("b", b).node("Add", {"x", "b"}, {"y"}).output("y");
    sample.integer("broadcast", 1);
    if (axis) sample.integer("axis", *axis);
    return output_of(sample, {{"x", {1, 2, 3, 4, 5, 6}},
                              {"b", b == Integers{2} ? std::vector<double>{10, 20}
                                                     : std::vector<double>{10, 20, 30}}});
  };
  EXPECT_THAT(add({}, {3}), ElementsAre(11, 22, 33, 14, 25, 36));
  EXPECT_THAT(add(1, {3}), ElementsAre(11, 22, 33, 14, 25, 36));
  EXPECT_THAT(add(0, {2}), ElementsAre(11, 12, 13, 24, 25, 26));
}

TEST(Translations, comparisons_of_small_integers_and_booleans) {
  for (const int type : {kInt8, kUint8, test::kBool}) {
    Sample sample;
    sample.input("a", {4}, type).input("b", {4}, type);
    sample.node("Equal", {"a", "b"}, {"y"}).output("y", test::kBool);
    EXPECT_THAT(output_of(sample, {{"a", {0, 1, 0, 1}}, {"b", {0, 0, 1, 1}}}),
                ElementsAre(1, 0, 0, 1))
        << type;
  }
  Sample wide(12);
  wide.input("a", {2}, kInt64).input("b", {2}, kInt64);
  wide.node("Less", {"a", "b"}, {"y"}).output("y", test::kBool);
  const double large = 0x1p40;
  EXPECT_THAT(output_of(wide, {{"a", {large, 1}}, {"b", {large + 1, large}}}), ElementsAre(1, 1));
}

TEST(Translations, slopes_of_old_belong_to_channels) {
  const auto prelu = [](std::int64_t opset, const Integers& x, const Integers& slope) {
    Sample sample(opset);
    sample.input("x", x).node("PRelu", {"x", "slope"}, {"y"}).output("y");
    const auto count = static_cast<std::size_t>(Shape(slope).elements());
    sample.floats("slope", slope, count == 2 ? std::vector<float>{2, 3} : std::vector<float>{5});
    const auto elements = static_cast<std::size_t>(Shape(x).elements());
    return output_of(sample, {{"x", std::vector<double>(elements, -1)}});
  };
  EXPECT_THAT(prelu(6, {1, 2, 2}, {2}), ElementsAre(-2, -2, -3, -3));
  EXPECT_THAT(prelu(7, {1, 2, 2}, {2}), ElementsAre(-2, -3, -2, -3));
  EXPECT_THAT(prelu(6, {1, 2, 2}, {2, 1}), ElementsAre(-2, -2, -3, -3));
  EXPECT_THAT(prelu(6, {2}, {2}), ElementsAre(-2, -3));
}

TEST(Translations, whole_numbers_to_a_power_that_is_known) {
  const auto powers = [](int type, int exponent_type, const std::vector<double>& bases,
                         const std::vector<double>& exponents) {
    Sample sample;
    const auto count = std::ssize(bases);
    sample.input("x", {count}, type).node("Pow", {"x", "e"}, {"y"}).output("y", type);
    auto& tensor = sample.initializer("e", {count}, exponent_type);
    for (const auto value : exponents) {
      if (exponent_type == kInt64) {
        tensor.add_int64_data(static_cast<std::int64_t>(value));
      } else {
        tensor.add_float_data(static_cast<float>(value));
      }
    }
    return output_of(sample, {{"x", bases}});
  };
  EXPECT_THAT(powers(kInt32, test::kFloat, {4, 3, 257}, {0.5, 2, 3}), ElementsAre(2, 9, 16974593));
  EXPECT_THAT(powers(kInt32, test::kFloat, {257, 3}, {3, 2}), ElementsAre(16974593, 9));
  EXPECT_THAT(powers(kInt64, kInt64, {0x1p40 + 1, 3}, {1, 5}), ElementsAre(0x1p40 + 1, 243));
  EXPECT_THAT(powers(kInt32, kInt64, {7}, {2}), ElementsAre(49));
}

TEST(Translations, bounds_of_a_clip_may_be_left_out) {
  const auto clip = [](const char* low, const char* high) {
    Sample sample;
    sample.input("x", {3}).node("Clip", {"x", low, high}, {"y"}).output("y");
    sample.floats("low", {}, {-1});
    sample.floats("high", {}, {2});
    return output_of(sample, {{"x", {-5, 0, 5}}});
  };
  EXPECT_THAT(clip("low", "high"), ElementsAre(-1, 0, 2));
  EXPECT_THAT(clip("", "high"), ElementsAre(-5, 0, 2));
  EXPECT_THAT(clip("low", ""), ElementsAre(-1, 0, 5));
  auto old = one_node("Clip", {3}, 6);
  old.number("min", -1).number("max", 2);
  EXPECT_THAT(output_of(old, {{"x", {-5, 0, 5}}}), ElementsAre(-1, 0, 2));
}

TEST(Translations, remainders_have_the_sign_of_the_divisor_unless_fmod_asks_for_the_other) {
  const auto mod = [](int type, bool fmod, const std::vector<double>& a,
                      const std::vector<double>& b) {
    Sample sample;
    sample.input("a", {4}, type).input("b", {4}, type).node("Mod", {"a", "b"}, {"y"});
    sample.integer("fmod", fmod ? 1 : 0).output("y", type);
    return output_of(sample, {{"a", a}, {"b", b}});
  };
  for (const int type : {kInt8, kInt32, kInt64}) {
    EXPECT_THAT(mod(type, false, {7, -7, 7, -6}, {3, 3, -3, 3}), ElementsAre(1, 2, -2, 0)) << type;
    EXPECT_THAT(mod(type, true, {7, -7, 7, -6}, {3, 3, -3, 3}), ElementsAre(1, -1, 1, 0)) << type;
  }
  EXPECT_THAT(mod(kUint8, false, {7, 200, 255, 6}, {3, 201, 16, 3}), ElementsAre(1, 200, 15, 0));
}

TEST(Translations, infinities_of_the_signs_that_are_asked_for) {
  const auto infinite = [](std::int64_t positive, std::int64_t negative) {
    Sample sample;
    sample.input("x", {3}).node("IsInf", {"x"}, {"y"}).output("y", test::kBool);
    sample.integer("detect_positive", positive).integer("detect_negative", negative);
    return output_of(sample, {{"x", {-kInfinite, 1, kInfinite}}});
  };
  EXPECT_THAT(infinite(1, 1), ElementsAre(1, 0, 1));
  EXPECT_THAT(infinite(1, 0), ElementsAre(0, 0, 1));
  EXPECT_THAT(infinite(0, 1), ElementsAre(1, 0, 0));
  EXPECT_THAT(infinite(0, 0), ElementsAre(0, 0, 0));
}

/// x [2, 2], constant indices and updates.
Sample scattered(const std::string& op, const Integers& sizes, const Integers& indices,
                 const Integers& update_sizes, const std::string& reduction) {
  Sample sample(16);
  sample.input("x", {2, 2}).input("u", update_sizes).node(op, {"x", "i", "u"}, {"y"}).output("y");
  sample.text("reduction", reduction);
  auto& tensor = sample.initializer("i", sizes, kInt64);
  for (const auto index : indices) tensor.add_int64_data(index);
  return sample;
}

TEST(Translations, updates_replace_elements_or_are_added) {
  const std::vector<double> x = {1, 2, 3, 4};
  const auto rows = [&](const std::string& reduction, const Integers& at) {
    return scattered("ScatterND", {std::ssize(at), 1}, at, {std::ssize(at), 2}, reduction);
  };
  EXPECT_THAT(output_of(rows("none", {1}), {{"x", x}, {"u", {10, 20}}}), ElementsAre(1, 2, 10, 20));
  EXPECT_THAT(output_of(rows("add", {1, 1}), {{"x", x}, {"u", {10, 20, 30, 40}}}),
              ElementsAre(1, 2, 43, 64));
  test::expect_refused(rows("none", {1, 1}), "indices that stand twice");
  test::expect_refused(rows("mul", {1}), "attribute reduction: mul");
  const auto elements = [&](const std::string& reduction) {
    return scattered("ScatterElements", {1, 2}, {1, 0}, {1, 2}, reduction);
  };
  EXPECT_THAT(output_of(elements("none"), {{"x", x}, {"u", {10, 20}}}), ElementsAre(1, 20, 10, 4));
  EXPECT_THAT(output_of(elements("add"), {{"x", x}, {"u", {10, 20}}}), ElementsAre(1, 22, 13, 4));
}

TEST(Translations, rows_before_operator_set_13_reach_from_the_axis_on) {
  const std::vector<double> x = {1, 4, 3, 4, 2, 0};
  for (const auto& [opset, axis, expected] :
       {std::tuple<std::int64_t, std::optional<std::int64_t>, std::vector<double>>{
            11, {}, {0, 1, 0, 0, 0, 0}},
        {11, 2, {0, 1, 0, 1, 1, 0}},
        {13, {}, {0, 1, 0, 1, 1, 0}},
        {13, 1, {0, 1, 1, 0, 0, 0}}}) {
    auto sample = one_node("Hardmax", {1, 3, 2}, opset);
    if (axis) sample.integer("axis", *axis);
    EXPECT_THAT(output_of(sample, {{"x", x}}), ::testing::ElementsAreArray(expected))
        << opset << " " << axis.value_or(-9);
  }
  for (const char* op : {"Hardmax", "Softmax"}) {
    EXPECT_THAT(output_of(one_node(op, {2}, 11), {{"x", {0, 0}}}), ElementsAre(1, 1))
        << op << ": each element is a row of its own";
  }
}

TEST(Translations, sums_run_along_an_axis_forwards_and_backwards) {
  const auto sums = [](bool exclusive, bool reverse, std::int64_t size) {
    Sample sample;
    sample.input("x", {size}).node("CumSum", {"x", "axis"}, {"y"}).output("y");
    sample.integer("exclusive", exclusive ? 1 : 0).integer("reverse", reverse ? 1 : 0);
    sample.constants("axis", {0}).clear_dims();
    std::vector<double> x = {1, 2, 3};
    x.resize(static_cast<std::size_t>(size));
    return output_of(sample, {{"x", x}});
  };
  EXPECT_THAT(sums(false, false, 3), ElementsAre(1, 3, 6));
  EXPECT_THAT(sums(true, false, 3), ElementsAre(0, 1, 3));
  EXPECT_THAT(sums(false, true, 3), ElementsAre(6, 5, 3));
  EXPECT_THAT(sums(true, true, 3), ElementsAre(5, 3, 0));
  EXPECT_THAT(sums(true, false, 0), ::testing::IsEmpty());
}

TEST(Translations, diagonals_have_the_type_that_is_asked_for) {
  auto eye = one_node("EyeLike", {2, 3}, 9);
  EXPECT_THAT(output_of(eye, {{"x", std::vector<double>(6)}}), ElementsAre(1, 0, 0, 0, 1, 0));
  eye.integer("k", 1).integer("dtype", kInt32);
  eye.graph().clear_output();
  eye.output("y", kInt32);
  EXPECT_THAT(output_of(eye, {{"x", std::vector<double>(6)}}), ElementsAre(0, 1, 0, 0, 0, 1));
}

/// x [1, 2] in the middle of what `mode` adds.
Sample padded(const std::string& mode, std::int64_t opset, bool axes, bool value) {
  Sample sample(opset);
  sample.input("x", {1, 2});
  if (opset < 11) {
    sample.node("Pad", {"x"}, {"y"}).integers("pads", {0, 1, 0, 1}).number("value", 9);
  } else {
    sample.node("Pad", {"x", "pads", value ? "value" : "", axes ? "axes" : ""}, {"y"});
    sample.constants("pads", axes ? Integers{1, 1} : Integers{0, 1, 0, 1});
    if (value) sample.floats("value", {}, {0.1F});
    if (axes) sample.constants("axes", {-1});
  }
  if (!mode.empty()) sample.text("mode", mode);
  return sample.output("y");
}

TEST(Translations, pads_of_every_mode) {
  const std::map<std::string, std::vector<double>> x = {{"x", {5, 6}}};
  EXPECT_THAT(output_of(padded("", 18, false, false), x), ElementsAre(0, 5, 6, 0));
  EXPECT_THAT(output_of(padded("constant", 18, true, true), x), close_to({0.1, 5, 6, 0.1}));
  EXPECT_THAT(output_of(padded("reflect", 18, false, false), x), ElementsAre(6, 5, 6, 5));
  EXPECT_THAT(output_of(padded("edge", 18, true, false), x), ElementsAre(5, 5, 6, 6));
  EXPECT_THAT(output_of(padded("edge", 10, false, false), x), ElementsAre(5, 5, 6, 6));
  EXPECT_THAT(output_of(padded("constant", 10, false, false), x), ElementsAre(9, 5, 6, 9));
}

TEST(Translations, a_dropout_that_is_not_in_training_is_the_identity) {
  const auto dropped = [](std::int64_t opset, bool training_input, const ImportOptions& options) {
    Sample sample(opset);
    sample.input("x", {2});
    if (training_input) {
      sample.node("Dropout", {"x", "ratio", "training"}, {"y", "mask"});
      sample.floats("ratio", {}, {0.5F});
      sample.initializer("training", {}, test::kBool).add_int32_data(0);
    } else {
      sample.node("Dropout", {"x"}, {"y", "mask"});
    }
    sample.output("y").output("mask", opset < 10 ? test::kFloat : test::kBool);
    return imported(sample, options).graph.outputs().size();
  };
  for (const std::int64_t opset : {7, 10, 13}) EXPECT_EQ(dropped(opset, false, {}), 2);
  EXPECT_EQ(dropped(13, true, {}), 2);
  // Neither an old one nor one that says so is taken for a lost training.
  EXPECT_EQ(dropped(11, false, {.dropout_seed = 5}), 2);
  EXPECT_EQ(dropped(13, true, {.dropout_seed = 5}), 2);
  EXPECT_EQ(dropped(13, false, {.dropout_seed = 5}), 2);
}

TEST(Translations, depth_becomes_space_in_either_order) {
  const auto moved = [](const char* mode) {
    auto sample = one_node("DepthToSpace", {1, 8, 1, 1});
    sample.integer("blocksize", 2).text("mode", mode);
    return output_of(sample, {{"x", {0, 1, 2, 3, 4, 5, 6, 7}}});
  };
  EXPECT_THAT(moved("DCR"), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(moved("CRD"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Translations, steps_of_optimizers) {
  const auto step = [](const char* op, std::size_t states, std::int64_t time,
                       const std::function<void(Sample&)>& set) {
    Sample sample;
    test::Names names = {"r", "t", "x", "g"};
    for (std::size_t i = 0; i < states; ++i) names.push_back("s" + std::to_string(i));
    std::map<std::string, std::vector<double>> values = {
        {"r", {0.5}}, {"t", {static_cast<double>(time)}}, {"x", {2}}, {"g", {4}}, {"s0", {3}},
        {"s1", {5}}};
    if (states < 2) values.erase("s1");
    for (const auto& name : names) sample.input(name, {}, name == "t" ? kInt64 : test::kFloat);
    test::Names outputs = {"y", "n0", "n1"};
    outputs.resize(states + 1);
    sample.node(op, names, outputs);
    set(sample);
    sample.graph().mutable_node(0)->set_domain("ai.onnx.preview.training");
    auto& domain = *sample.model.add_opset_import();
    domain.set_domain("ai.onnx.preview.training");
    domain.set_version(1);
    for (const auto& name : outputs) sample.output(name);
    return output_of(sample, values).front();
  };
  const auto near = [](double value) { return ::testing::DoubleNear(value, 1e-5); };
  const auto nothing = [](Sample&) {};
  EXPECT_THAT(step("Adagrad", 1, 0, nothing), near(2 - 0.5 * 4 / std::sqrt(3 + 16)));
  const auto decay = [](Sample& s) {
    s.number("norm_coefficient", 0.5F).number("decay_factor", 1);
  };
  EXPECT_THAT(step("Adagrad", 1, 3, decay), near(2 - 0.125 * 5 / std::sqrt(3 + 25)));
  const auto momentum = [](const char* mode) {
    return [=](Sample& s) { s.number("alpha", 0.5F).number("beta", 0.25F).text("mode", mode); };
  };
  EXPECT_THAT(step("Momentum", 1, 0, momentum("standard")), near(2 - 0.5 * (1.5 + 4)));
  EXPECT_THAT(step("Momentum", 1, 1, momentum("standard")), near(2 - 0.5 * (1.5 + 1)));
  EXPECT_THAT(step("Momentum", 1, 1, momentum("nesterov")), near(2 - 0.5 * (4 + 0.5 * 2.5)));
  const auto adam = [](float after) {
    return [=](Sample& s) {
      s.number("alpha", 0.5F).number("beta", 0.5F).number("epsilon", 0);
      s.number("norm_coefficient_post", after);
    };
  };
  const double plain = 2 - 0.5 * (0.5 * 3 + 0.5 * 4) / std::sqrt(0.5 * 5 + 0.5 * 16);
  EXPECT_THAT(step("Adam", 2, 0, adam(0)), near(plain));
  EXPECT_THAT(step("Adam", 2, 0, adam(0.25F)), near(0.75 * plain));
}

TEST(Translations, a_gradient_of_no_norm_leaves_an_infinite_weight_alone) {
  Sample sample;
  for (const char* name : {"r", "x", "g", "h"}) sample.input(name, {});
  sample.input("t", {}, kInt64).node("Adagrad", {"r", "t", "x", "g", "h"}, {"y", "n"});
  sample.graph().mutable_node(0)->set_domain("ai.onnx.preview.training");
  sample.model.add_opset_import()->set_domain("ai.onnx.preview.training");
  sample.output("n");
  EXPECT_THAT(
      output_of(sample, {{"r", {1}}, {"t", {0}}, {"x", {kInfinite}}, {"g", {2}}, {"h", {1}}}),
      ElementsAre(5));
}

TEST(Translations, losses_of_every_reduction) {
  const auto loss = [](const char* reduction) {
    Sample sample;
    sample.input("x", {2, 2}).node("NegativeLogLikelihoodLoss", {"x", "t", "w"}, {"y"});
    sample.text("reduction", reduction).output("y").constants("t", {0, 1});
    sample.floats("w", {2}, {1, 3});
    return output_of(sample, {{"x", {-1, -9, -9, -2}}});
  };
  EXPECT_THAT(loss("none"), ElementsAre(1, 6));
  EXPECT_THAT(loss("sum"), ElementsAre(7));
  EXPECT_THAT(loss("mean"), ElementsAre(1.75));
}

TEST(Translations, norms_of_one_and_two) {
  const auto norm = [](std::int64_t p) {
    auto sample = one_node("LpNormalization", {2});
    return output_of(sample.integer("p", p), {{"x", {-3, 4}}});
  };
  EXPECT_THAT(norm(1), close_to({-3.0 / 7, 4.0 / 7}));
  EXPECT_THAT(norm(2), close_to({-0.6, 0.8}));
}

TEST(Translations, mean_and_variance_over_the_axes_that_are_given) {
  auto sample = one_node("MeanVarianceNormalization", {1, 2, 1, 2});
  const std::map<std::string, std::vector<double>> x = {{"x", {1, 3, 10, 30}}};
  EXPECT_THAT(output_of(sample, x), close_to({-1, 1, -1, 1}));
  EXPECT_THAT(output_of(sample.integers("axes", {1}), x), close_to({-1, -1, 1, 1}));
}

TEST(Translations, batches_in_training_give_the_next_running_values) {
  Sample sample(15);
  sample.input("x", {2, 1, 2})
      .node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "m1", "v1"});
  sample.integer("training_mode", 1).number("momentum", 0.5F).number("epsilon", 0);
  for (const auto& [name, value] : {std::pair("s", 2.0F), {"b", 1.0F}, {"m", 8.0F}, {"v", 3.0F}})
    sample.floats(name, {1}, {value});
  for (const char* name : {"y", "m1", "v1"}) sample.output(name);
  const auto outputs = outputs_of(sample, {{"x", {1, 1, 5, 5}}});
  EXPECT_THAT(outputs[0].values, close_to({-1, -1, 3, 3}));
  EXPECT_THAT(outputs[1].values, close_to({5.5}));
  EXPECT_THAT(outputs[2].values, close_to({3.5}));
  // With one of them as a state neither is updated in place.
  for (const char* state : {"m", "v"}) {
    const auto half = imported(sample, {.states = {{state, StateRole::Statistic}}}).graph;
    EXPECT_EQ(half.outputs().size(), 3U);
    for (const auto& node : half.nodes()) EXPECT_TRUE(node.updates().empty()) << state;
  }
}

TEST(Translations, reductions_of_whole_numbers_are_exact) {
  const auto reduced = [](const char* op, int type, const std::vector<double>& x) {
    auto sample = one_node(op, {std::ssize(x)}, 12, type);
    return output_of(sample, {{"x", x}});
  };
  EXPECT_THAT(reduced("ReduceSum", kInt32, {0x1p24, 1}), ElementsAre(0x1p24 + 1));
  EXPECT_THAT(reduced("ReduceSum", kInt64, {0x1p40, 1}), ElementsAre(0x1p40 + 1));
  EXPECT_THAT(reduced("ReduceMax", kInt8, {-3, 5, -128}), ElementsAre(5));
  EXPECT_THAT(reduced("ReduceMin", kUint8, {200, 5, 255}), ElementsAre(5));
  EXPECT_THAT(reduced("ReduceSumSquare", kInt32, {4097, 1}), ElementsAre(4097.0 * 4097 + 1));
  const auto smallest = [](int type, const std::vector<double>& x) {
    Sample sample;
    sample.input("x", {std::ssize(x)}, type).node("ArgMin", {"x"}, {"y"}).output("y", kInt64);
    return output_of(sample, {{"x", x}});
  };
  EXPECT_THAT(smallest(kInt64, {0x1p40 + 1, 0x1p40, 0x1p41}), ElementsAre(1));
  EXPECT_THAT(smallest(kInt8, {5, -128, 127}), ElementsAre(1));
  EXPECT_THAT(smallest(test::kFloat, {5, -128, 127}), ElementsAre(1));
}

TEST(Translations, reductions_of_nothing_and_over_no_axes) {
  const auto empty = [](const char* op) {
    auto sample = one_node(op, {0, 2});
    return output_of(sample.integers("axes", {0}).integer("keepdims", 0), {{"x", {}}});
  };
  EXPECT_THAT(empty("ReduceMax"), ElementsAre(-kInfinite, -kInfinite));
  EXPECT_THAT(empty("ReduceMin"), ElementsAre(kInfinite, kInfinite));
  const auto sum = [](bool noop, bool axes) {
    Sample sample;
    sample.input("x", {2, 2}).node("ReduceSum", {"x", axes ? "axes" : ""}, {"y"}).output("y");
    sample.integer("noop_with_empty_axes", noop ? 1 : 0).integer("keepdims", 0);
    if (axes) sample.constants("axes", {1});
    return output_of(sample, {{"x", {1, 2, 3, 4}}});
  };
  EXPECT_THAT(sum(false, false), ElementsAre(10));
  EXPECT_THAT(sum(true, false), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(sum(true, true), ElementsAre(3, 7));
}

TEST(Translations, logarithms_of_sums) {
  auto sample = one_node("ReduceLogSum", {2});
  EXPECT_THAT(output_of(sample, {{"x", {1, 3}}}), close_to({std::log(4)}));
}

TEST(Translations, types_that_are_asked_for_as_double_are_told) {
  EXPECT_FALSE(test::loaded(one_node("Relu", {1})).has_doubles);
  const auto asks = [](const char* name, std::int64_t type) {
    auto sample = one_node("Relu", {1});
    return test::loaded(sample.integer(name, type)).has_doubles;
  };
  for (const char* name : {"to", "dtype", "output_dtype"}) {
    EXPECT_TRUE(asks(name, test::kDouble)) << name;
    EXPECT_FALSE(asks(name, test::kFloat)) << name;
  }
  EXPECT_FALSE(asks("axis", test::kDouble));
}

}  // namespace
}  // namespace triptych::onnx
