// Results that stay in the unified buffer for the next layer: the same bits, less DRAM traffic.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backends/all_backends.h"
#include "core/base/random.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/ops/conv.h"
#include "core/ops/matmul.h"
#include "core/ops/quantized_conv.h"
#include "core/runtime/executor.h"
#include "systolic/driver/driver.h"

namespace triptych {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

/// A machine by its name, or by its rows and columns: "12x12".
std::unique_ptr<Device> machine(const std::string& name, const std::string& simulate = "twin") {
  const auto cross = name.find('x');
  auto json = name;
  if (cross != std::string::npos)
    json = fmt::format(R"({{"name": "{}", "rows": {}, "columns": {}, "accumulator_rows": 512}})",
                       name, name.substr(0, cross), name.substr(cross + 1));
  return open_device("systolic", {.extra = {{"machine", json}, {"simulate", simulate}}});
}

/// Weights as states, so that a device alone makes the outcome.
class Chain {
 public:
  explicit Chain(TensorSpec x) : dtype_(x.dtype), value_(graph_.add_input("x", x)) {}

  void conv(std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
    const auto in = graph_.spec(value_).shape[1];
    std::vector inputs = {value_, weights(Shape{out, in, kernel, kernel})};
    if (dtype_ == DType::I8) {
      for (const auto& [low, high] : {std::pair{-9999, 9999}, {1 << 29, 1 << 30}, {36, 38}})
        inputs.push_back(numbers(DType::I32, Shape{out}, low, high));
      add(windowed<QuantizedConv>(kernel, stride), inputs);
    } else {
      inputs.push_back(numbers(DType::F32, Shape{out}, -1, 1));
      add(windowed<Conv>(kernel, stride), inputs);
    }
  }
  void matmul(std::int64_t columns) {
    const auto k = graph_.spec(value_).shape[1];
    add(MatMul{}, {value_, weights(Shape{k, columns})});
  }
  /// The gradient of the weights of a 1 x 1 convolution with `out` channels: it streams the value
  /// transposed.
  void weight_gradient(std::int64_t out) {
    auto dims = graph_.spec(value_).shape.dims();
    dims[1] = out;
    add(windowed<ConvWeightGradient>(1, 1), {value_, weights(Shape(dims))});
  }
  /// The value is read by somebody else, too.
  void show(const std::string& name) { graph_.mark_output(name, value_); }

  Graph take() {
    show("y");
    return std::move(graph_);
  }

 private:
  template <class Op>
  static Op windowed(std::int64_t kernel, std::int64_t stride) {
    Op op;
    op.kernel_shape = {kernel, kernel};
    op.pads = Dims(4, kernel / 2);
    op.strides = {stride, stride};
    if constexpr (requires { op.activation; }) op.activation = "relu";
    return op;
  }
  void add(const auto& op, const std::vector<ValueId>& inputs) {
    value_ = graph_.add_node(make_op(op), inputs, fmt::format("layer{}", layers_++))[0];
  }
  ValueId weights(Shape shape) {
    return dtype_ == DType::I8 ? numbers(dtype_, std::move(shape), -128, 127)
                               : numbers(dtype_, std::move(shape), -0.5, 0.5);
  }
  ValueId numbers(DType dtype, Shape shape, double low, double high) {
    return graph_.add_state(fmt::format("w{}", states_++), random_tensor(dtype, shape, low, high));
  }

 public:
  static Tensor random_tensor(DType dtype, const Shape& shape, double low, double high) {
    RandomStream random(17, static_cast<std::uint64_t>(shape.elements()));
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    for (auto& value : values) value = low + (high - low) * (random.bits() * 0x1p-32);
    return from_doubles({dtype, shape}, values);
  }

 private:
  Graph graph_;
  DType dtype_;
  ValueId value_;
  int layers_ = 0, states_ = 0;
};

struct Outcome {
  std::vector<std::string> kept;    ///< where each step's output stays
  std::vector<std::uint8_t> bytes;  ///< of y
  double cycles = 0, dram_bytes = 0;
};

Outcome run(Graph graph, Device& device, bool keep_values = false) {
  const auto x = graph.values_of(ValueKind::Input)[0];
  const auto spec = graph.spec(x);
  const auto input = graph.value(x).name;
  const auto contract = spec.dtype == DType::I8 ? Contract::Int8 : Contract::Bf16Exact;
  StateStore states(device);
  const auto cpu = open_device("cpu", {.threads = 1});
  const auto output = graph.outputs()[0].name;
  Executor executor(make_plan(std::move(graph), {&device, cpu.get()},
                              {.placement = {.contract = contract}, .keep_values = keep_values}),
                    states);
  Outcome outcome;
  for (const auto& step : executor.plan().steps) outcome.kept.push_back(step.keeps_output);
  const auto before = device.counters();
  executor.set_input(input, Chain::random_tensor(spec.dtype, spec.shape, -100, 100));
  executor.run();
  for (const auto& [name, count] : device.counters()) {
    if (name == "mmu_cycles") outcome.cycles = count - before.at(name);
    if (name.starts_with("mmu_dram_") && name.ends_with("_bytes"))
      outcome.dram_bytes += count - before.at(name);
  }
  const auto y = executor.output(output);
  for (const auto byte : y.bytes()) outcome.bytes.push_back(std::to_integer<std::uint8_t>(byte));
  return outcome;
}

Graph convolutions(DType dtype, std::int64_t in, const std::vector<std::int64_t>& widths,
                   std::int64_t stride = 1) {
  Chain chain({dtype, Shape{2, in, 9, 8}});
  std::int64_t kernel = 3;
  for (const auto width : widths) {
    chain.conv(width, kernel, stride);
    kernel = 4 - kernel;  // 3 and 1 by turns
    stride = 1;
  }
  return chain.take();
}

/// Some outputs stay, and y has the bits of the CPU.
Outcome expect_kept(const Graph& graph, const std::string& name,
                    const std::string& simulate = "twin") {
  SCOPED_TRACE(name);
  const auto device = machine(name, simulate);
  const auto cpu = open_device("cpu", {.threads = 1});
  const auto expected = run(graph.clone(), *cpu);
  const auto apart = run(graph.clone(), *device, true);
  auto kept = run(graph.clone(), *device);
  EXPECT_THAT(apart.kept, Each(IsEmpty()));
  EXPECT_THAT(kept.kept, Contains("the unified buffer"));
  EXPECT_TRUE(kept.kept.back().empty());
  EXPECT_EQ(apart.bytes, expected.bytes);
  EXPECT_EQ(kept.bytes, expected.bytes);
  EXPECT_LT(kept.dram_bytes, apart.dram_bytes);
  EXPECT_LE(kept.cycles, 1.05 * apart.cycles);
  return kept;
}

TEST(KeptActivations, convolutions_have_the_bits_of_the_cpu) {
  for (const auto* name : {"mmu4", "mmu16", "12x12", "8x20"}) {
    expect_kept(convolutions(DType::F32, 3, {4, 4, 4}), name);
  }
  // Several column tiles, the last one narrow, and buffer rows of all channels.
  for (const auto* name : {"mmu4", "mmu16", "12x12"}) {
    expect_kept(convolutions(DType::F32, 5, {42, 33, 20, 7}), name);
  }
}

TEST(KeptActivations, quantised_convolutions_have_the_bits_of_the_cpu) {
  expect_kept(convolutions(DType::I8, 3, {8, 5, 8}), "mmu16-int8");
  expect_kept(convolutions(DType::I8, 20, {40, 16, 33}, 2), "mmu16-int8");
  expect_kept(convolutions(DType::I8, 20, {300, 256, 33}), "tpu-v1");
}

TEST(KeptActivations, products_have_the_bits_of_the_cpu) {
  Chain chain({DType::F32, Shape{37, 21}});
  for (const auto width : {48, 30, 9}) chain.matmul(width);
  EXPECT_THAT(expect_kept(chain.take(), "mmu16").kept,
              ElementsAre("the unified buffer", "the unified buffer", ""));
}

TEST(KeptActivations, networks_have_the_bits_of_the_cpu) {
  auto config = model_preset("unet-s");
  config.size = 32;
  const auto graph =
      optimize(build_inference_graph(config, 2, config.size, config.size, 0), {.inference = true});
  for (const auto* name : {"mmu16", "tpu-v2-core"}) {
    EXPECT_GE(std::ranges::count(expect_kept(graph, name).kept, "the unified buffer"), 6) << name;
  }
}

TEST(KeptActivations, hardware_keeps_them_as_the_twin_does) {
  const auto built = mmu::rtl_machines();
  for (const auto& [name, dtype] : {std::pair{"mmu4", DType::F32}, {"mmu16-int8", DType::I8}}) {
    if (std::ranges::find(built, name) == built.end()) continue;
    expect_kept(convolutions(dtype, 3, {18, 16, 5}, 2), name, "both");
  }
}

TEST(KeptActivations, what_somebody_else_reads_goes_to_memory) {
  const auto device = machine("mmu16");
  Chain chain({DType::F32, Shape{1, 16, 9, 8}});
  chain.conv(16, 3);
  chain.show("first");
  chain.conv(16, 3);
  chain.conv(16, 3);
  EXPECT_THAT(run(chain.take(), *device).kept, ElementsAre("", "the unified buffer", ""));
}

TEST(KeptActivations, what_is_read_transposed_goes_to_memory) {
  const auto device = machine("mmu16");
  const auto cpu = open_device("cpu", {.threads = 1});
  Chain chain({DType::F32, Shape{1, 16, 9, 8}});
  chain.conv(16, 1);
  chain.weight_gradient(16);
  const auto graph = chain.take();
  const auto outcome = run(graph.clone(), *device);
  EXPECT_THAT(outcome.kept, Each(IsEmpty()));
  EXPECT_EQ(outcome.bytes, run(graph.clone(), *cpu).bytes);
}

TEST(KeptActivations, what_the_buffer_cannot_hold_goes_to_memory) {
  // 8,192 rows of 16 channels.
  const auto device = machine("mmu16");
  for (const auto& [size, stays] : {std::pair{24, true}, {40, false}}) {
    Chain chain({DType::F32, Shape{1, 16, size, size}});
    chain.conv(128, 1);
    chain.conv(16, 1);
    EXPECT_EQ(run(chain.take(), *device).kept[0].empty(), !stays) << size;
  }
}

TEST(KeptActivations, a_tiling_that_is_given_stays_as_it_is) {
  const auto device =
      open_device("systolic", {.extra = {{"machine", "mmu16"}, {"tiling", "pass=16"}}});
  EXPECT_THAT(run(convolutions(DType::F32, 16, {16, 16}), *device).kept, Each(IsEmpty()));
}

TEST(KeptActivations, the_reason_of_a_step_says_where_its_output_stays) {
  const auto device = machine("mmu16");
  const auto plan = make_plan(convolutions(DType::F32, 16, {16, 16}), {device.get()},
                              {.placement = {.contract = Contract::Bf16Exact}});
  EXPECT_EQ(reason_of(plan, plan.steps[0]), "its output stays in the unified buffer");
  EXPECT_EQ(reason_of(plan, plan.steps[1]), "best kernel");
}

}  // namespace
}  // namespace triptych
