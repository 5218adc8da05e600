// Activations that are stored channels last: the bits of planes, over random networks.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/tiles/tile_unit.h"
#include "core/ops/concat.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/pool.h"
#include "core/ops/quantized_conv.h"
#include "core/ops/unary.h"
#include "core/runtime/executor.h"
#include "core/runtime/formats.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

using testing::HasSubstr;

/// Convolutions, poolings and concats, a value of which may be read by several. Convolutions run on
/// the tile unit, or its stand-in.
class Network {
 public:
  explicit Network(std::uint64_t seed, DType dtype = DType::F32)
      : random_(17, seed), seed_(seed), dtype_(dtype) {}

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + random_.below(high - low + 1);
  }
  const Shape& shape(ValueId x) const { return graph.spec(x).shape; }

  ValueId input(Shape shape) { return graph.add_input("x", {dtype_, std::move(shape)}); }
  ValueId constant(Shape shape) {
    const auto name = "c" + std::to_string(constants_++);
    const auto stream = 100 * seed_ + static_cast<std::uint64_t>(constants_);
    return graph.add_constant(name,
                              std::make_shared<Tensor>(random_tensor(std::move(shape), stream)));
  }
  ValueId conv(ValueId x, std::int64_t out, std::vector<std::int64_t> kernel,
               std::vector<std::int64_t> pads, std::int64_t dilation = 1, bool relu = true) {
    const auto set = [&](auto op) {
      op.kernel_shape = kernel;
      op.pads = pads;
      op.dilations = {dilation, dilation};
      op.activation = relu ? "relu" : "";
      return multiply(op, x, {out, shape(x)[1], kernel[0], kernel[1]}, out);
    };
    return dtype_ == DType::I8 ? set(QuantizedConv{}) : set(Conv{});
  }
  ValueId padded_conv(ValueId x, std::int64_t out, std::int64_t size, std::int64_t dilation = 1) {
    const auto pad = size / 2 * dilation;
    return conv(x, out, {size, size}, {pad, pad, pad, pad}, dilation, pick(0, 1) == 0);
  }
  ValueId up(ValueId x, std::int64_t out, std::int64_t height, std::int64_t width) {
    const auto set = [&](auto op) {
      op.kernel_shape = op.strides = {height, width};
      return multiply(op, x, {shape(x)[1], out, height, width}, out);
    };
    return dtype_ == DType::I8 ? set(QuantizedConvTranspose{}) : set(ConvTranspose{});
  }
  ValueId pool(ValueId x, std::int64_t size, std::int64_t stride, std::int64_t pad) {
    MaxPool op;
    op.kernel_shape = {size, size};
    op.strides = {stride, stride};
    op.pads = {pad, pad, pad, pad};
    return graph.emit_one(make_op(op), {x});
  }
  ValueId concat(std::vector<ValueId> parts) {
    Concat op;
    op.axis = 1;
    return graph.emit(make_op(op), parts)[0];
  }
  ValueId any(ValueId x) {
    const auto out = 4 * pick(1, 20);
    const bool large = std::min(shape(x)[2], shape(x)[3]) >= 4;
    switch (pick(0, large ? 6 : 4)) {
      case 0:
        return padded_conv(x, out, 1);
      case 1:
      case 2:
        return padded_conv(x, out, 3, pick(1, 2));
      case 3:
        return shape(x)[2] <= 20 ? up(x, out, 2, pick(1, 2)) : padded_conv(x, out, 1);
      case 4:
        return conv(x, out, {3, 1}, {pick(0, 2), pick(0, 1), pick(1, 2), pick(0, 1)});
      case 5:
        return pool(x, 2, 2, 0);
      default:
        return pool(x, 3, pick(1, 2), 1);
    }
  }

  Graph graph;

 private:
  /// A convolution, with a bias or without; of int8 with one, and rescaled to int8.
  template <class Op>
  ValueId multiply(const Op& op, ValueId x, Shape weights, std::int64_t out) {
    if (dtype_ == DType::I8) {
      const std::vector inputs = {x, integers<std::int8_t>(std::move(weights), -128, 127),
                                  integers<std::int32_t>({out}, -9999, 9999),
                                  integers<std::int32_t>({out}, 300, 900),
                                  integers<std::int32_t>({out}, 16, 18)};
      return graph.emit(make_op(op), inputs)[0];
    }
    const auto w = constant(std::move(weights));
    if (pick(0, 3) == 0) return graph.emit_one(make_op(op), {x, w});
    return graph.emit_one(make_op(op), {x, w, constant({out})});
  }
  template <class T>
  ValueId integers(Shape shape, std::int64_t low, std::int64_t high) {
    auto values = std::make_shared<Tensor>(TensorSpec{dtype_of<T>, std::move(shape)});
    for (auto& value : values->template as<T>()) value = static_cast<T>(pick(low, high));
    return graph.add_constant("c" + std::to_string(constants_++), values);
  }

  RandomStream random_;
  std::uint64_t seed_;
  DType dtype_;
  int constants_ = 0;
};

PlanOptions options_of(bool channels_last) {
  PlanOptions options;
  options.placement.contract = Contract::Bf16;
  options.placement.forced_kernels = {{"Conv", "tiles"},
                                      {"ConvTranspose", "tiles"},
                                      {"QuantizedConv", "tiles"},
                                      {"QuantizedConvTranspose", "tiles"}};
  options.channels_last = channels_last;
  return options;
}

/// An executor of the graph, and how many of its values are stored channels last.
struct Runner {
  Runner(const Graph& graph, bool channels_last, int threads = 2)
      : device(backend().open({.threads = threads})),
        states(*device),
        executor(make_plan(graph.clone(), {device.get()}, options_of(channels_last)), states) {}

  std::vector<Tensor> outputs(const Tensor& x) {
    executor.set_input("x", x);
    executor.run();
    std::vector<Tensor> results;
    for (const auto& output : executor.plan().graph.outputs())
      results.push_back(executor.output(output.name));
    return results;
  }
  std::int64_t stored() const {
    return std::ranges::count_if(executor.plan().locations[0], [](const auto& location) {
      return location && location->channels_last;
    });
  }

  std::unique_ptr<Device> device;
  StateStore states;
  Executor executor;
};

Graph random_network(std::uint64_t seed, DType dtype) {
  Network net(seed, dtype);
  auto x = net.input({net.pick(1, 3), net.pick(1, 20), net.pick(4, 20), net.pick(4, 37)});
  std::vector<ValueId> values = {net.padded_conv(x, 4 * net.pick(1, 10), 3)};
  const auto count = net.pick(2, 6);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = values[static_cast<std::size_t>(net.pick(0, std::ssize(values) - 1))];
    values.push_back(net.any(from));
    std::vector<ValueId> alike;
    for (const auto value : values) {
      const auto &a = net.shape(value), &b = net.shape(values.back());
      if (a[2] == b[2] && a[3] == b[3]) alike.push_back(value);
    }
    if (alike.size() > 1 && net.pick(0, 1) == 0) values.push_back(net.concat(alike));
  }
  net.graph.mark_output("y", net.padded_conv(values.back(), net.pick(1, 9), 1));
  net.graph.mark_output("z", values[static_cast<std::size_t>(net.pick(0, std::ssize(values) - 1))]);
  return std::move(net.graph);
}

Tensor random_input(const TensorSpec& spec, std::uint64_t seed) {
  auto values = random_tensor(spec.shape, seed, -128, 128);
  if (spec.dtype == DType::F32) return values;
  Tensor integers(spec);
  std::ranges::transform(values.as<float>(), integers.as<std::int8_t>().begin(),
                         [](float value) { return static_cast<std::int8_t>(value); });
  return integers;
}

void expect_bits_of_planes(DType dtype) {
  // The stand-in of the tile unit is a thousand times as slow.
  const std::uint64_t seeds = tile_unit_missing().empty() ? 200 : 20;
  std::uint64_t stored = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto graph = random_network(seed, dtype);
    const auto x = random_input(graph.spec(graph.values_of(ValueKind::Input)[0]), seed);
    Runner planes(graph, false), last(graph, true, static_cast<int>(seed % 3) + 1);
    EXPECT_EQ(planes.stored(), 0);
    stored += static_cast<std::uint64_t>(last.stored());
    const auto expected = planes.outputs(x);
    expect_same_bits(last.outputs(x), expected);
    // Their memory then holds values of the first run.
    expect_same_bits(last.outputs(x), expected);
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(stored, seeds / 2);
}

TEST(ChannelsLast, RandomNetworksHaveTheBitsOfPlanes) { expect_bits_of_planes(DType::F32); }
TEST(ChannelsLast, RandomInt8NetworksHaveTheBitsOfPlanes) { expect_bits_of_planes(DType::I8); }

/// x -> conv -> conv -> y.
Graph two_convolutions(std::int64_t channels) {
  Network net(1);
  const auto hidden = net.padded_conv(net.input({1, 4, 6, 6}), channels, 3);
  net.graph.mark_output("y", net.padded_conv(hidden, 5, 3));
  return std::move(net.graph);
}

TEST(ChannelsLast, ConvolutionsPassNotANumberAndInfinity) {
  const auto graph = two_convolutions(8);
  auto x = random_tensor({1, 4, 6, 6});
  x.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  x.as<float>()[35] = std::numeric_limits<float>::infinity();
  expect_same_bits(Runner(graph, true).outputs(x), Runner(graph, false).outputs(x));
}

TEST(ChannelsLast, ThePlanNamesTheFormat) {
  const Runner run(two_convolutions(8), true);
  const auto& plan = run.executor.plan();
  EXPECT_THAT(reason_of(plan, plan.steps[0]), HasSubstr("stored in bf16, channels last"));
  EXPECT_THAT(reason_of(plan, plan.steps[1]), testing::Not(HasSubstr("channels last")));
  EXPECT_TRUE(plan.output_operands(plan.steps[0])[0].channels_last);
  EXPECT_EQ(plan.input_operands(plan.steps[1])[0].channels_last->pad, 1);
}

TEST(ChannelsLast, ValuesThatOthersReadStayPlanes) {
  const auto stored = [](const Graph& graph) { return Runner(graph, true).stored(); };
  EXPECT_EQ(stored(two_convolutions(8)), 1);
  EXPECT_EQ(stored(two_convolutions(7)), 0) << "words of two channels";
  EXPECT_EQ(stored(two_convolutions(34)), 0) << "17 words do not fill two steps";
  Network read_by_another(2), output(3);
  auto hidden = read_by_another.padded_conv(read_by_another.input({1, 4, 6, 6}), 8, 3);
  read_by_another.graph.mark_output("y", read_by_another.padded_conv(hidden, 5, 3));
  read_by_another.graph.mark_output(
      "z", read_by_another.graph.emit_one(make_op(Unary(UnaryKind::Sigmoid)), {hidden}));
  EXPECT_EQ(stored(read_by_another.graph), 0);
  hidden = output.padded_conv(output.input({1, 4, 6, 6}), 8, 3);
  output.graph.mark_output("hidden", hidden);
  output.graph.mark_output("y", output.padded_conv(hidden, 5, 3));
  EXPECT_EQ(stored(output.graph), 0);
}

TEST(ChannelsLast, OtherContractsStoreNothingSo) {
  auto options = options_of(true);
  options.placement.forced_kernels.clear();
  const auto device = backend().open({.threads = 1});
  for (const auto contract : {Contract::F32, Contract::Bf16Exact}) {
    options.placement.contract = contract;
    const auto plan = make_plan(two_convolutions(8), {device.get()}, options);
    EXPECT_FALSE(plan.output_operands(plan.steps[0])[0].channels_last);
  }
}

TEST(ChannelsLast, AValueIsReadBackAsPlanes) {
  const Shape shape = {2, 2, 1, 2};
  const ChannelsLast format = {.dtype = DType::BF16, .pad = 1, .pitch = 3};
  std::vector<BFloat16> stored(2 * 3 * 4 * 3, BFloat16(9.0F));
  std::vector<float> expected, planes(8);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto n = i / 4, c = i / 2 % 2, x = i % 2;
    expected.push_back(static_cast<float>(i));
    stored[((n * 3 + 1) * 4 + x + 1) * 3 + c] = BFloat16(static_cast<float>(i));
  }
  planes_from_channels_last(shape, format, std::as_bytes(std::span(stored)), planes);
  EXPECT_EQ(planes, expected);
  EXPECT_EQ(bytes_of(shape, format), (2 * 3 * 4 + kSlackPositions) * 3 * sizeof(BFloat16));
}

}  // namespace
}  // namespace triptych::cpu
