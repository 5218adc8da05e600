// Recurrent layers of ONNX files against ONNX's formulas, in both directions and both layouts, and
// the layers that are refused.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::expect_refused;
using test::output_of;
using test::outputs_of;
using test::Sample;
using ::testing::Pointwise;

constexpr std::int64_t kSteps = 3, kBatch = 2;
/// With one input and one hidden element, every weight is a number per gate.
struct Weights {
  std::vector<float> w, r, input_bias, hidden_bias, peepholes;
};

struct LayerCase {
  std::string op = "RNN";
  std::int64_t gates = 1;
  std::string direction = "forward";
  std::vector<std::string> activations = {"Tanh"};  ///< of one direction
  bool biases = false, state = false, peepholes = false, linear = false, batch_first = false;

  std::int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  bool has_cell() const { return op == "LSTM"; }
};

std::vector<float> drawn(std::mt19937& random, std::int64_t count) {
  std::vector<float> values;
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::int64_t i = 0; i < count; ++i) values.push_back(uniform(random));
  return values;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double activated(const std::string& name, double x) {
  if (name == "Sigmoid") return sigmoid(x);
  return name == "Tanh" ? std::tanh(x) : std::max(x, 0.0);
}

/// A step by the formulas of ONNX's operator pages; `h` and `c` are replaced.
void step(const LayerCase& layer, const Weights& p, double x, double& h, double& c) {
  const auto gate = [&](std::size_t g, double hidden) {
    return p.w[g] * x + p.input_bias[g] + p.r[g] * hidden + p.hidden_bias[g];
  };
  const auto f = [&](std::size_t i, double value) {
    return activated(layer.activations[i], value);
  };
  if (layer.op == "RNN") {
    h = f(0, gate(0, h));
  } else if (layer.op == "GRU") {
    const double z = f(0, gate(0, h)), r = f(0, gate(1, h));
    const double candidate =
        layer.linear ? p.w[2] * x + p.input_bias[2] + r * (p.r[2] * h + p.hidden_bias[2])
                     : gate(2, r * h);
    h = (1 - z) * f(1, candidate) + z * h;
  } else {
    const double i = f(0, gate(0, h) + p.peepholes[0] * c);
    const double forget = f(0, gate(2, h) + p.peepholes[2] * c);
    c = forget * c + i * f(1, gate(3, h));
    h = f(0, gate(1, h) + p.peepholes[1] * c) * f(2, c);
  }
}

/// The number of directions times what one direction has.
class Layer {
 public:
  explicit Layer(LayerCase layer) : case_(std::move(layer)) {
    x_ = drawn(random_, kSteps * kBatch);
    for (std::int64_t d = 0; d < case_.directions(); ++d) {
      const auto bias = [&] {
        return case_.biases ? drawn(random_, case_.gates) : std::vector<float>(4, 0);
      };
      Weights weights{drawn(random_, case_.gates), drawn(random_, case_.gates), bias(), bias(), {}};
      weights.peepholes = case_.peepholes ? drawn(random_, 3) : std::vector<float>(3, 0);
      weights_.push_back(weights);
    }
    const auto states = case_.directions() * kBatch;
    h_ = case_.state ? drawn(random_, states) : std::vector<float>(4, 0);
    c_ = case_.state ? drawn(random_, states) : std::vector<float>(4, 0);
  }

  /// The node, whose input x is [steps, batch, 1], or batch first.
  Sample sample() const {
    Sample sample(14);
    const auto d = case_.directions();
    const auto shaped = [&](const char* name, test::Integers sizes, std::vector<float> values) {
      sample.floats(name, sizes, values);
      return std::string(name);
    };
    const auto all = [&](const auto& part) {
      std::vector<float> values;
      for (const auto& one : weights_) {
        const auto own = part(one);
        values.insert(values.end(), own.begin(), own.end());
      }
      return values;
    };
    const bool turned = case_.batch_first;
    sample.input("x",
                 turned ? test::Integers{kBatch, kSteps, 1} : test::Integers{kSteps, kBatch, 1});
    test::Names inputs = {"x"};
    inputs.push_back(shaped("w", {d, case_.gates, 1}, all([](auto& one) { return one.w; })));
    inputs.push_back(shaped("r", {d, case_.gates, 1}, all([](auto& one) { return one.r; })));
    inputs.push_back(case_.biases ? shaped("b", {d, 2 * case_.gates}, all(both_biases)) : "");
    inputs.emplace_back();  // all sequences have the same length
    const test::Integers state =
        turned ? test::Integers{kBatch, d, 1} : test::Integers{d, kBatch, 1};
    inputs.push_back(case_.state ? shaped("h", state, in_layout(h_)) : "");
    if (case_.has_cell()) {
      inputs.push_back(case_.state ? shaped("c", state, in_layout(c_)) : "");
      const auto peepholes = all([](auto& one) { return one.peepholes; });
      inputs.push_back(case_.peepholes ? shaped("p", {d, 3}, peepholes) : "");
    }
    while (inputs.back().empty()) inputs.pop_back();
    test::Names outputs = {"y", "last"};
    if (case_.has_cell()) outputs.emplace_back("cell");
    sample.node(case_.op, inputs, outputs).integer("hidden_size", 1);
    sample.text("direction", case_.direction).integer("layout", turned ? 1 : 0);
    if (case_.linear) sample.integer("linear_before_reset", 1);
    test::Names activations;
    for (std::int64_t i = 0; i < d; ++i)
      activations.insert(activations.end(), case_.activations.begin(), case_.activations.end());
    sample.texts("activations", activations);
    for (const auto& output : outputs) sample.output(output);
    return sample;
  }

  std::vector<double> x() const {
    std::vector<double> values(x_.size());
    for (std::int64_t t = 0; t < kSteps; ++t)
      for (std::int64_t b = 0; b < kBatch; ++b)
        values[index(case_.batch_first ? b * kSteps + t : t * kBatch + b)] =
            x_[index(t * kBatch + b)];
    return values;
  }

  /// Y [steps, directions, batch], Y_h and Y_c [directions, batch], or batch first.
  std::vector<std::vector<double>> expected() const {
    const auto directions = case_.directions(), states = directions * kBatch;
    std::vector<double> y(index(kSteps * states)), last(index(states)), cell(index(states));
    for (std::int64_t d = 0; d < directions; ++d) {
      for (std::int64_t b = 0; b < kBatch; ++b) {
        double h = h_[index(d * kBatch + b)], c = c_[index(d * kBatch + b)];
        for (std::int64_t i = 0; i < kSteps; ++i) {
          const bool backward = case_.direction == "reverse" || d == 1;
          const auto t = backward ? kSteps - 1 - i : i;
          step(case_, weights_[index(d)], x_[index(t * kBatch + b)], h, c);
          y[index(case_.batch_first ? (b * kSteps + t) * directions + d
                                    : (t * directions + d) * kBatch + b)] = h;
        }
        const auto at = index(case_.batch_first ? b * directions + d : d * kBatch + b);
        last[at] = h;
        cell[at] = c;
      }
    }
    if (case_.has_cell()) return {y, last, cell};
    return {y, last};
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static std::vector<float> both_biases(const Weights& one) {
    auto both = one.input_bias;
    both.insert(both.end(), one.hidden_bias.begin(), one.hidden_bias.end());
    return both;
  }
  /// Initial states [directions, batch], or batch first.
  std::vector<float> in_layout(const std::vector<float>& states) const {
    if (!case_.batch_first || case_.directions() == 1) return states;
    return {states[0], states[2], states[1], states[3]};
  }

  LayerCase case_;
  std::mt19937 random_{7};
  std::vector<float> x_, h_, c_;
  std::vector<Weights> weights_;
};

class Recurrent : public ::testing::TestWithParam<LayerCase> {};

TEST_P(Recurrent, layers_compute_the_formulas_of_onnx) {
  const Layer layer(GetParam());
  const auto outputs = outputs_of(layer.sample(), {{"x", layer.x()}});
  const auto expected = layer.expected();
  ASSERT_EQ(outputs.size(), expected.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_THAT(outputs[i].values, Pointwise(::testing::DoubleNear(1e-6), expected[i])) << i;
}

std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases;
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    for (const bool batch_first : {false, true}) {
      LayerCase rnn{.direction = direction, .batch_first = batch_first};
      LayerCase gru{"GRU", 3, direction, {"Sigmoid", "Tanh"}};
      LayerCase lstm{"LSTM", 4, direction, {"Sigmoid", "Tanh", "Tanh"}};
      for (auto* layer : {&rnn, &gru, &lstm}) {
        layer->batch_first = batch_first;
        cases.push_back(*layer);
        layer->biases = layer->state = true;
        if (layer != &gru) layer->activations.back() = "Relu";
        layer->peepholes = layer->has_cell();
        cases.push_back(*layer);
      }
      gru.linear = true;
      cases.push_back(gru);
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Onnx, Recurrent, ::testing::ValuesIn(layer_cases()),
                         [](const auto& tested) {
                           const auto& layer = tested.param;
                           return layer.op + "_" + layer.direction +
                                  (layer.batch_first ? "_batch_first" : "") +
                                  (layer.biases ? "_whole" : "") + (layer.linear ? "_linear" : "");
                         });

/// A forward RNN of two steps of x [2, 1, 3] with two hidden elements, and one change.
Sample rnn_with(const std::function<void(Sample&)>& change, test::Integers w = {1, 2, 3},
                test::Integers r = {1, 2, 2}, test::Integers x = {2, 1, 3}) {
  Sample sample(14);
  const auto ones = [&](const char* name, const test::Integers& sizes) {
    std::int64_t count = 1;
    for (const auto size : sizes) count *= size;
    sample.floats(name, sizes, std::vector<float>(static_cast<std::size_t>(count), 1));
  };
  ones("w", w);
  ones("r", r);
  sample.input("x", x).node("RNN", {"x", "w", "r", "", "lengths"}, {"y"}).output("y");
  sample.initializer("lengths", {1}, test::kInt32).add_int32_data(2);
  change(sample);
  return sample;
}

TEST(RecurrentLayer, defaults_are_forward_and_tanh_without_biases) {
  const auto sample = rnn_with([](Sample&) {});
  const auto first = std::tanh(0.6), second = std::tanh(-0.3 + 2 * first);
  EXPECT_THAT(output_of(sample, {{"x", {0.1, 0.2, 0.3, -0.1, -0.1, -0.1}}}),
              Pointwise(::testing::DoubleNear(1e-6), {first, first, second, second}));
}

TEST(RecurrentLayer, refuses_what_it_would_compute_otherwise) {
  expect_refused(rnn_with([](Sample& s) { s.text("direction", "up"); }), "direction is unknown");
  expect_refused(rnn_with([](Sample& s) { s.number("clip", 1); }), "clip");
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    const auto with_list = [&](Sample& s) { s.attribute(name, 6).add_floats(1); };
    expect_refused(rnn_with(with_list), "activation_alpha and activation_beta");
  }
  expect_refused(rnn_with([](Sample& s) { s.texts("activations", {"Elu"}); }), "activation Elu");
  const auto two = [](Sample& s) { s.texts("activations", {"Tanh", "Tanh"}); };
  expect_refused(rnn_with(two), "another number of activations");
  const auto short_one = [](Sample& s) { s.graph().mutable_initializer(2)->set_int32_data(0, 1); };
  expect_refused(rnn_with(short_one), "sequences of several lengths");
}

TEST(RecurrentLayer, refuses_operands_that_do_not_fit) {
  const auto nothing = [](Sample&) {};
  const char* message = "its operands do not fit";
  EXPECT_NO_THROW(test::imported(rnn_with(nothing)));
  expect_refused(rnn_with(nothing, {2, 3}), message);
  expect_refused(rnn_with(nothing, {1, 2, 3}, {2, 2}), message);
  expect_refused(rnn_with(nothing, {1, 2, 3}, {1, 2, 2}, {2, 3}), message);
  expect_refused(rnn_with(nothing, {2, 2, 3}), message);
  expect_refused(rnn_with(nothing, {1, 3, 3}), message);
  expect_refused(rnn_with(nothing, {1, 2, 4}), message);
  expect_refused(rnn_with(nothing, {1, 2, 3}, {1, 3, 2}), message);
  expect_refused(rnn_with(nothing, {1, 2, 3}, {2, 2, 2}), message);
  expect_refused(rnn_with(nothing, {1, 2, 3}, {1, 2, 2}, {2, 0, 3}), message);
  expect_refused(rnn_with([](Sample& s) { s.integer("hidden_size", 3); }), message);
}

}  // namespace
}  // namespace triptych::onnx
