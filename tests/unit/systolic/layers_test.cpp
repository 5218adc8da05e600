// Layers of many shapes give the same bits on arrays of every size as on the CPU.
// All tests share the machines and the layers of this file.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backends/all_backends.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "core/ops/quantized_conv.h"
#include "core/runtime/plan.h"
#include "experiments/check/case_runner.h"
#include "systolic/driver/order.h"
#include "systolic/driver/watcher.h"

namespace triptych {
namespace {

using conformance::f32;
using conformance::OpCase;

/// A machine of the array by its name, or by its rows, columns and dataflows: "5x7", "4x4 both".
std::string machine_named(const std::string& name) {
  const auto cross = name.find('x'), blank = std::min(name.find(' '), name.size());
  if (cross == std::string::npos) return name;
  return fmt::format(R"({{"name": "{}", "rows": {}, "columns": {}, "accumulator_rows": 512,
                         "dataflows": "{}"}})",
                     name, name.substr(0, cross), name.substr(cross + 1, blank - cross - 1),
                     blank < name.size() ? name.substr(blank + 1) : "weight-stationary");
}

/// "cpu", a machine of the array, or one with a tiling of its own: "mmu4:pass=8,columns=1".
Device& machine(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Device>> devices;
  auto& device = devices[name];
  if (!device) {
    const auto colon = std::min(name.find(':'), name.size());
    std::map<std::string, std::string> options = {
        {"machine", machine_named(name.substr(0, colon))}};
    if (colon < name.size()) options["tiling"] = name.substr(colon + 1);
    device = name == "cpu" ? open_device("cpu", {.threads = 1})
                           : open_device("systolic", {.extra = options});
  }
  return *device;
}

/// Parts of a convolution of any kind. Sizes of one axis are [height, width].
struct Layer {
  std::int64_t batch = 1, in = 1, out = 1;
  Dims size = {5, 5};
  Dims kernel = {3, 3};
  Dims strides = {1, 1};
  Dims pads = {1, 1, 1, 1};
  Dims dilations = {1, 1};
  std::int64_t group = 1;
  bool bias = false;
  std::string activation;
};

Shape image(std::int64_t batch, std::int64_t channels, const Dims& size) {
  Dims dims = {batch, channels};
  dims.insert(dims.end(), size.begin(), size.end());
  return Shape(dims);
}

template <class T>
T windowed(const Layer& layer) {
  T op;
  op.kernel_shape = layer.kernel;
  op.strides = layer.strides;
  op.pads = layer.pads;
  op.dilations = layer.dilations;
  op.group = layer.group;
  return op;
}

OpCase conv(const std::string& name, const Layer& layer) {
  auto op = windowed<Conv>(layer);
  op.activation = layer.activation;
  OpCase test = {name, make_op(op), {f32(image(layer.batch, layer.in, layer.size))}};
  test.inputs.push_back(f32(image(layer.out, layer.in / layer.group, layer.kernel)));
  if (layer.bias) test.inputs.push_back(f32(Shape{layer.out}));
  return test;
}

OpCase conv_transpose(const std::string& name, const Layer& layer) {
  OpCase test = {name,
                 make_op(windowed<ConvTranspose>(layer)),
                 {f32(image(layer.batch, layer.in, layer.size))}};
  test.inputs.push_back(f32(image(layer.in, layer.out / layer.group, layer.kernel)));
  if (layer.bias) test.inputs.push_back(f32(Shape{layer.out}));
  return test;
}

OpCase weight_gradient(const std::string& name, const Layer& layer) {
  const auto forward = conv(name, layer);
  const auto y = forward.op->infer(std::vector{forward.inputs[0].spec, forward.inputs[1].spec});
  return {name, make_op(windowed<ConvWeightGradient>(layer)), {forward.inputs[0], f32(y[0].shape)}};
}

OpCase matmul(const std::string& name, Shape a, Shape b, bool transpose_a = false,
              bool transpose_b = false) {
  MatMul op;
  op.transpose_a = transpose_a;
  op.transpose_b = transpose_b;
  return {name, make_op(op), {f32(std::move(a)), f32(std::move(b))}};
}

void expect_the_bits_of_the_cpu(const OpCase& test, const std::vector<std::string>& machines) {
  const auto inputs = conformance::make_inputs(test);
  const auto expected =
      conformance::run_on_device(test, inputs, machine("cpu"), Contract::Bf16Exact);
  for (const auto& name : machines) {
    const auto actual =
        conformance::run_on_device(test, inputs, machine(name), Contract::Bf16Exact);
    ASSERT_EQ(actual.size(), 1U);
    const auto is = actual[0].as<float>();
    const auto want = expected[0].as<float>();
    ASSERT_EQ(is.size(), want.size());
    for (std::size_t i = 0; i < is.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(is[i]), std::bit_cast<std::uint32_t>(want[i]))
          << test.name << " on " << name << ", element " << i << ": " << is[i] << ", the CPU has "
          << want[i];
    }
  }
}

const std::vector<std::string> kAll = {"mmu2",
                                       "mmu4",
                                       "5x7",
                                       "12x20",
                                       "mmu16",
                                       "mmu32",
                                       "4x4 output-stationary",
                                       "12x20 output-stationary"};

struct Named {
  std::string name;
  Layer layer;
};

std::vector<Named> layers() {
  return {
      {"one_value", {.size = {1, 1}, .kernel = {1, 1}, .pads = {0, 0, 0, 0}}},
      {"one_position", {.in = 3, .out = 5, .size = {1, 1}}},
      {"rgb", {.batch = 3, .in = 3, .out = 7, .size = {6, 9}, .bias = true}},
      {"pointwise", {.batch = 2, .in = 37, .out = 33, .kernel = {1, 1}, .pads = {0, 0, 0, 0}}},
      {"strided", {.batch = 2, .in = 8, .out = 9, .size = {9, 12}, .strides = {2, 3}}},
      {"stride_beyond_kernel",
       {.in = 4,
        .out = 4,
        .size = {11, 9},
        .kernel = {2, 1},
        .strides = {3, 4},
        .pads = {0, 0, 0, 0}}},
      {"dilated",
       {.batch = 3, .in = 6, .out = 5, .size = {9, 7}, .pads = {2, 3, 2, 3}, .dilations = {2, 3}}},
      {"tiles",
       {.batch = 2,
        .in = 12,
        .out = 10,
        .size = {6, 9},
        .kernel = {2, 3},
        .strides = {2, 3},
        .pads = {0, 0, 0, 0},
        .group = 2}},
      {"tiles_beyond_the_buffer",
       {.in = 300,
        .out = 3,
        .size = {4, 4},
        .kernel = {2, 2},
        .strides = {2, 2},
        .pads = {0, 0, 0, 0}}},
      {"groups", {.batch = 2, .in = 12, .out = 6, .size = {7, 5}, .group = 3, .bias = true}},
      {"depthwise", {.in = 5, .out = 5, .size = {8, 8}, .group = 5}},
      {"uneven_padding", {.in = 2, .out = 3, .size = {4, 5}, .pads = {0, 2, 1, 0}}},
      {"padding_beyond_kernel", {.in = 2, .out = 3, .size = {2, 2}, .pads = {4, 4, 4, 4}}},
      {"signal",
       {.batch = 2,
        .in = 3,
        .out = 4,
        .size = {40},
        .kernel = {5},
        .strides = {2},
        .pads = {2, 1},
        .dilations = {1},
        .bias = true}},
      {"large_kernel", {.in = 3, .out = 2, .size = {9, 9}, .kernel = {7, 7}, .pads = {3, 3, 3, 3}}},
      {"more_channels_than_rows", {.in = 40, .out = 35, .size = {4, 4}, .bias = true}},
      {"many_positions", {.batch = 2, .in = 3, .out = 4, .size = {40, 37}}},
  };
}

TEST(SystolicLayers, convolutions_have_the_bits_of_the_cpu) {
  for (const auto& [name, layer] : layers()) expect_the_bits_of_the_cpu(conv(name, layer), kAll);
}

TEST(SystolicLayers, fused_relu_has_the_bits_of_the_cpu) {
  expect_the_bits_of_the_cpu(conv("relu", {.in = 4, .out = 6, .bias = true, .activation = "relu"}),
                             kAll);
}

TEST(SystolicLayers, transposed_convolutions_have_the_bits_of_the_cpu) {
  for (const auto& [name, layer] : layers()) {
    auto smaller = layer;
    if (name == "padding_beyond_kernel") continue;  // has no output
    if (name == "one_position") smaller.pads = {0, 0, 0, 0};
    expect_the_bits_of_the_cpu(conv_transpose(name, smaller), kAll);
  }
  expect_the_bits_of_the_cpu(conv_transpose("tiles", {.batch = 2,
                                                      .in = 10,
                                                      .out = 6,
                                                      .kernel = {2, 2},
                                                      .strides = {2, 2},
                                                      .pads = {0, 0, 0, 0},
                                                      .bias = true}),
                             kAll);
}

TEST(SystolicLayers, weight_gradients_have_the_bits_of_the_cpu) {
  for (const auto& [name, layer] : layers()) {
    expect_the_bits_of_the_cpu(weight_gradient(name, layer), kAll);
  }
}

TEST(SystolicLayers, matrix_products_have_the_bits_of_the_cpu) {
  for (const auto& test :
       {matmul("one_value", Shape{1, 1}, Shape{1, 1}),
        matmul("square", Shape{33, 33}, Shape{33, 33}), matmul("row", Shape{1, 50}, Shape{50, 70}),
        matmul("column", Shape{70, 50}, Shape{50, 1}), matmul("vectors", Shape{9}, Shape{9}),
        matmul("batched", Shape{3, 4, 5}, Shape{3, 5, 6}),
        matmul("broadcast", Shape{2, 1, 4, 5}, Shape{3, 5, 6}),
        matmul("merged", Shape{3, 7, 5}, Shape{5, 6}),
        matmul("transposed", Shape{5, 9}, Shape{7, 5}, true, true),
        matmul("k_in_chunks", Shape{3, 5000}, Shape{5000, 4})}) {
    expect_the_bits_of_the_cpu(test, kAll);
  }
}

// Products that vanish leave zeros with a sign, which padding must not change.
TEST(SystolicLayers, vanishing_products_have_the_bits_of_the_cpu) {
  const std::vector<double> tiny = {1e-20, -1e-20, 1e-40, -1e-40, -0.0, 3e-39, -1e-38, 1e-19};
  for (const std::int64_t channels : {1, 3, 5}) {
    auto test = conv("tiny", {.batch = 2, .in = channels, .out = 6, .size = {4, 6}});
    for (std::size_t i = 0; i < test.inputs.size(); ++i) {
      auto& input = test.inputs[i];
      for (std::int64_t e = 0; e < input.spec.shape.elements(); ++e) {
        input.values.push_back(tiny[static_cast<std::size_t>((e * 5 + e / 7) % 8)] *
                               (i == 0 ? 1 : -1));
      }
    }
    expect_the_bits_of_the_cpu(test, kAll);
  }
}

/// Result of a quantised convolution: its sums, or int8.
enum class Result { Sums, Int8 };

/// The layer on integers. Op is QuantizedConv or QuantizedConvTranspose.
template <class Op>
OpCase quantized(const std::string& name, const Layer& layer, Result result) {
  auto op = windowed<Op>(layer);
  op.activation = layer.activation;
  const bool transposed = std::is_same_v<Op, QuantizedConvTranspose>;
  const auto rows = transposed ? layer.in : layer.out;
  const auto columns = (transposed ? layer.out : layer.in) / layer.group;
  OpCase test = {name, make_op(op), {}};
  test.inputs = {conformance::of(DType::I8, image(layer.batch, layer.in, layer.size), -128, 127),
                 conformance::of(DType::I8, image(rows, columns, layer.kernel), -128, 127)};
  const auto finish = conformance::requantization(layer.out);
  if (layer.bias || result == Result::Int8) test.inputs.push_back(finish[0]);
  if (result == Result::Sums) return test;
  test.inputs.insert(test.inputs.end(), finish.begin() + 1, finish.end());
  // Where a multiplier is negative, the ReLU must come after it.
  test.inputs[3].low = -0x7FFFFFFF;
  return test;
}

template <class Op>
void expect_the_integers_of_the_cpu(const std::string& name, const Layer& layer,
                                    const std::vector<Device*>& devices) {
  for (const auto result : {Result::Sums, Result::Int8}) {
    for (const char* activation : {"", "relu"}) {
      auto activated = layer;
      activated.activation = activation;
      const auto test = quantized<Op>(name, activated, result);
      const auto inputs = conformance::make_inputs(test);
      const auto on = [&](Device& device) {
        return conformance::run_on_device(test, inputs, device, Contract::Int8);
      };
      const auto expected = on(machine("cpu"));
      for (Device* device : devices) {
        const auto actual = on(*device);
        ASSERT_EQ(actual[0].spec(), expected[0].spec());
        ASSERT_TRUE(std::ranges::equal(actual[0].bytes(), expected[0].bytes()))
            << name << " on " << device->info().description << ", activation \"" << activation
            << "\", " << to_string(expected[0].spec());
      }
    }
  }
}

void expect_the_integers_of_all_layers(const std::vector<Device*>& devices) {
  for (const auto& [name, layer] : layers()) {
    expect_the_integers_of_the_cpu<QuantizedConv>(name, layer, devices);
    auto smaller = layer;
    if (name == "padding_beyond_kernel") continue;  // has no transposed output
    if (name == "one_position") smaller.pads = {0, 0, 0, 0};
    expect_the_integers_of_the_cpu<QuantizedConvTranspose>(name, smaller, devices);
  }
  const Layer tiles = {.batch = 2,
                       .in = 20,
                       .out = 12,
                       .kernel = {2, 2},
                       .strides = {2, 2},
                       .pads = {0, 0, 0, 0},
                       .group = 2};
  expect_the_integers_of_the_cpu<QuantizedConvTranspose>("tiles", tiles, devices);
}

TEST(SystolicLayers, quantised_convolutions_have_the_bits_of_the_cpu) {
  expect_the_integers_of_all_layers({&machine("mmu16-int8"), &machine("tpu-v1")});
}

TEST(SystolicLayers, quantised_convolutions_have_the_bits_of_the_cpu_on_the_rtl) {
  std::unique_ptr<Device> both;
  try {
    both = open_device("systolic", {.extra = {{"machine", "mmu16-int8"}, {"simulate", "both"}}});
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  expect_the_integers_of_all_layers({both.get()});
}

TEST(SystolicLayers, a_quantised_layer_leaves_the_array_as_bytes) {
  Device& device = machine("mmu16-int8");
  const Layer layer = {.in = 16, .out = 16, .size = {8, 8}};
  const auto unpacked = [&](Result result) {
    const auto test = quantized<QuantizedConv>("bytes", layer, result);
    const auto before = device.counters().at("bytes_unpacked");
    conformance::run_on_device(test, conformance::make_inputs(test), device, Contract::Int8);
    return device.counters().at("bytes_unpacked") - before;
  };
  EXPECT_EQ(unpacked(Result::Sums), 4.0 * 16 * 8 * 8);
  EXPECT_EQ(unpacked(Result::Int8), 1.0 * 16 * 8 * 8);
}

std::string refusal(const OpCase& test, const std::string& name, Contract contract, Device* host) {
  try {
    conformance::run_on_device(test, conformance::make_inputs(test), machine(name), contract, host);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return "";
}

TEST(SystolicLayers, a_contract_that_the_array_cannot_honour_is_refused_with_a_remedy) {
  const auto test = conv("plain", {});
  EXPECT_EQ(refusal(test, "mmu4", Contract::Bf16, nullptr), "");
  EXPECT_THAT(refusal(test, "mmu4", Contract::F32, nullptr),
              testing::HasSubstr("the option contract bf16"));
  // Its host would take it, but it was meant for the array.
  EXPECT_THAT(refusal(test, "mmu4", Contract::F32, &machine("cpu")),
              testing::HasSubstr("the option fallback cpu"));
}

TEST(SystolicLayers, operands_that_the_array_cannot_multiply_are_refused_with_a_machine_that_can) {
  const auto floats = conv("plain", {});
  const auto integers = quantized<QuantizedConv>("plain", {}, Result::Int8);
  EXPECT_THAT(refusal(floats, "mmu16-int8", Contract::Bf16, &machine("cpu")),
              testing::HasSubstr("the option machine mmu16 "));
  EXPECT_THAT(refusal(integers, "mmu4", Contract::Int8, &machine("cpu")),
              testing::HasSubstr("the option machine mmu16-int8"));
}

TEST(SystolicLayers, unknown_options_are_refused_with_the_names_that_exist) {
  const auto open = [](const std::string& name, const std::string& value) {
    try {
      open_device("systolic", {.extra = {{name, value}}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(open("machine", "mmu17"), testing::HasSubstr("mmu16"));
  EXPECT_THAT(open("simulate", "vhdl"), testing::HasSubstr("twin, rtl or both"));
  EXPECT_THAT(open("colour", "red"), testing::HasSubstr("machine, simulate, tiling, ranks"));
}

TEST(SystolicLayers, tilings_of_ones_own_have_the_bits_of_the_cpu) {
  const Layer layer = {.batch = 2, .in = 13, .out = 18, .size = {9, 7}, .bias = true};
  const Layer plain = {.batch = 2, .in = 13, .out = 18, .size = {9, 7}};
  for (const auto* tiling :
       {"pass=7,columns=1", "y=2,x=3", "images=1,y=4,buffer=8", "group=1,pass=5",
        "pass=all,columns=2", "accumulators=16", "x=1,y=1", "taps=1,channels=8,group=4,pass=all"}) {
    const std::vector<std::string> tiled = {std::string("mmu4:") + tiling};
    expect_the_bits_of_the_cpu(conv(tiling, layer), tiled);
    if (std::string_view(tiling) != "y=2,x=3")  // a chain over positions has its rows in order
      expect_the_bits_of_the_cpu(weight_gradient(tiling, plain), tiled);
    expect_the_bits_of_the_cpu(matmul(tiling, Shape{70, 33}, Shape{33, 40}), tiled);
  }
  expect_the_bits_of_the_cpu(conv_transpose("data", plain), {"mmu4:pass=9,columns=1,buffer=2"});
}

TEST(SystolicLayers, sums_that_stay_in_the_array_seldom_reach_the_accumulators) {
  const auto test = conv("deep", {.in = 32, .out = 8, .size = {9, 7}});
  const auto counts = [&](const std::string& name) {
    Device& device = machine(name);
    const auto before = device.counters();
    conformance::run_on_device(test, conformance::make_inputs(test), device, Contract::Bf16);
    auto grown = device.counters();
    for (auto& [counter, value] : grown) value -= before.at(counter);
    return grown;
  };
  const auto weights = counts("4x4 both:dataflow=weight-stationary");
  const auto outputs = counts("4x4 both:dataflow=output-stationary");
  EXPECT_EQ(outputs.at("mmu_accumulator_writes"), 9.0 * 7 * 8) << "each result once";
  EXPECT_EQ(weights.at("mmu_accumulator_writes"), 9.0 * 7 * 8 * 9 * 32 / 4) << "each tile of k";
  EXPECT_GT(outputs.at("mmu_dram_weights_bytes"), weights.at("mmu_dram_weights_bytes"));
  const auto chosen = counts("4x4 both");
  EXPECT_LE(chosen.at("mmu_cycles"),
            1.01 * std::min(weights.at("mmu_cycles"), outputs.at("mmu_cycles")));
}

TEST(SystolicLayers, a_dataflow_that_cannot_run_is_refused) {
  const auto test = conv("layer", {.in = 4, .out = 4});
  EXPECT_THAT(refusal(test, "mmu4:dataflow=output-stationary", Contract::Bf16Exact, nullptr),
              testing::HasSubstr("its array has the weight-stationary dataflow only; choose a "
                                 "machine whose file says \"dataflows\": \"both\""));
  EXPECT_THAT(refusal(weight_gradient("gradient", {.in = 4, .out = 4}),
                      "4x4 both:dataflow=output-stationary", Contract::Bf16Exact, nullptr),
              testing::HasSubstr("the sums of a weight gradient run over all positions"));
}

TEST(SystolicLayers, a_tiling_that_does_not_fit_is_refused) {
  const auto large = conv("large", {.in = 64, .out = 64, .size = {32, 32}});
  const auto why = [&](const std::string& tiling) {
    return refusal(large, "mmu4:" + tiling, Contract::Bf16Exact, nullptr);
  };
  EXPECT_THAT(why("y=all,x=all"),
              testing::HasSubstr("the tiling \"y=all,x=all\" does not fit mmu4: a "
                                 "box of 1 x 32 x 32 positions of 64 channels takes "));
  EXPECT_EQ(why("group=8"), "") << "more than a row has means all of it";
  const auto wide = conv("wide", {.in = 4, .out = 64, .size = {32, 32}});
  EXPECT_THAT(refusal(wide, "mmu4:y=4,x=all,pass=64,columns=16", Contract::Bf16Exact, nullptr),
              testing::HasSubstr("64 of 128 positions in 16 column tiles do not fit 512 "));
  EXPECT_THAT(refusal(wide, "mmu4:images=all,y=all,x=all,pass=all", Contract::Bf16Exact, nullptr),
              testing::HasSubstr("1024 of 1024 positions in 1 column tiles do not fit"));
}

TEST(SystolicLayers, a_large_layer_keeps_the_array_busy) {
  Device& device = machine("mmu16");
  const auto before = device.counters();
  const auto test = conv("busy", {.in = 32, .out = 32, .size = {32, 32}});
  conformance::run_on_device(test, conformance::make_inputs(test), device, Contract::Bf16);
  const auto after = device.counters();
  const auto grown = [&](const char* name) { return after.at(name) - before.at(name); };
  EXPECT_EQ(grown("mmu_macs"), 32.0 * 32 * 9 * 32 * 32);
  EXPECT_EQ(grown("mmu_useful_macs"), grown("mmu_macs"));
  EXPECT_GT(grown("mmu_macs") / grown("mmu_pe_cycles"), 0.95);
}

TEST(SystolicLayers, a_long_program_is_not_kept) {
  const auto test = conv("long", {.in = 34, .out = 34, .size = {16, 16}});
  const auto plan = make_plan(conformance::make_graph(test, conformance::make_inputs(test)),
                              {&machine("mmu2")}, {.placement = {.contract = Contract::Bf16Exact}});
  const auto& owner = dynamic_cast<const mmu::ProgramOwner&>(*plan.steps.back().kernel);
  EXPECT_GT(owner.program().size() * sizeof(mmu::Instruction), 2U << 20);
  EXPECT_EQ(plan.kernel_bytes[0], 0U);
  expect_the_bits_of_the_cpu(test, {"mmu2"});
}

TEST(SystolicLayers, tokens_order_all_that_two_units_touch) {
  const Layer layer = {.batch = 2, .in = 13, .out = 18, .size = {9, 7}, .strides = {2, 1}};
  const std::vector<OpCase> tests = {conv("conv", layer), conv_transpose("data", layer),
                                     weight_gradient("weights", layer),
                                     matmul("product", Shape{70, 33}, Shape{33, 40})};
  const mmu::DramArray all[] = {
      {.name = "DRAM", .type = mmu::ElementType::Uint8, .shape = {1 << 16, 1 << 16}}};
  for (const auto* name : {"mmu2", "mmu4", "mmu16", "4x4 output-stationary"}) {
    for (const auto& test : tests) {
      const auto plan =
          make_plan(conformance::make_graph(test, conformance::make_inputs(test)), {&machine(name)},
                    {.placement = {.contract = Contract::Bf16Exact}});
      const auto& owner = dynamic_cast<const mmu::ProgramOwner&>(*plan.steps.back().kernel);
      const auto config = mmu::find_machine(machine_named(name));
      EXPECT_NO_THROW(mmu::check_order(owner.program(), config, all))
          << test.name << " on " << name;
    }
  }
}

TEST(SystolicLayers, padded_channels_are_used_but_not_useful) {
  Device& device = machine("mmu16");
  const auto before = device.counters();
  const auto test = conv("odd", {.in = 3, .out = 5, .size = {8, 8}});
  conformance::run_on_device(test, conformance::make_inputs(test), device, Contract::Bf16);
  const auto after = device.counters();
  const auto grown = [&](const char* name) { return after.at(name) - before.at(name); };
  EXPECT_EQ(grown("mmu_useful_macs"), 3.0 * 5 * 9 * 8 * 8);
  EXPECT_EQ(grown("mmu_macs"), 4.0 * 5 * 9 * 8 * 8) << "channels come in groups of 4";
}

}  // namespace
}  // namespace triptych
