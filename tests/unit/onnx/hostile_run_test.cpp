// Models with numbers that nobody would write, computed as far as they are accepted: a kernel meets
// nothing that a shape rule should have refused. TRIPTYCH_HOSTILE_MODELS=10000 makes that many
// models of each operator.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <random>

#include "backends/all_backends.h"
#include "core/graph/passes/passes.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/runtime/executor.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/onnx/samples.h"

namespace triptych::onnx {
namespace {

using test::Sample;

constexpr std::size_t kMemory = 1 << 24;
constexpr std::int64_t kNumbers[] = {0,
                                     1,
                                     -1,
                                     2,
                                     3,
                                     4,
                                     5,
                                     7,
                                     8,
                                     -2,
                                     16,
                                     255,
                                     1000,
                                     1LL << 20,
                                     1LL << 31,
                                     (1LL << 31) - 1,
                                     -(1LL << 31),
                                     1LL << 40,
                                     std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()};

/// One operator on an image x [2, 4, 6, 5] and weights w [4, 2, 3, 2].
Sample single(const char* op, const test::Names& inputs) {
  Sample sample;
  sample.input("x", {2, 4, 6, 5}).node(op, inputs, {"y"}).output("y");
  sample.floats("w", {4, 2, 3, 2}, std::vector<float>(48, 0.5F));
  sample.floats("c", {4}, {1, 2, 3, 4});
  return sample;
}

Sample windowed(const char* op, const test::Names& inputs) {
  auto sample = single(op, inputs);
  sample.integers("kernel_shape", {3, 2})
      .integers("strides", {2, 1})
      .integers("pads", {1, 0, 1, 1});
  sample.integers("dilations", {1, 2});
  return sample;
}

std::vector<Sample> samples() {
  std::vector<Sample> list = {test::image_sample()};
  list.push_back(windowed("Conv", {"x", "w", "c"}).integer("group", 2));
  list.push_back(windowed("ConvTranspose", {"x", "w"}).integers("output_padding", {1, 0}));
  list.push_back(windowed("MaxPool", {"x"}).integer("ceil_mode", 1));
  list.push_back(windowed("AveragePool", {"x"}).integer("count_include_pad", 1));
  list.push_back(single("Transpose", {"x"}).integers("perm", {0, 2, 3, 1}));
  list.push_back(single("Softmax", {"x"}).integer("axis", 2));
  list.push_back(single("ReduceMax", {"x"}).integers("axes", {1, 3}).integer("keepdims", 0));
  list.push_back(single("ArgMax", {"x"}).integer("axis", 1));
  list.back().graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      test::kInt64);
  list.push_back(single("LRN", {"x"}).integer("size", 3));
  list.push_back(single("SpaceToDepth", {"x"}).integer("blocksize", 1));
  list.push_back(single("DepthToSpace", {"x"}).integer("blocksize", 2));
  for (const auto& [op, numbers] :
       {std::pair<const char*, test::Integers>("Reshape", {2, -1, 0, 5}),
        {"Expand", {2, 4, 6, 5}},
        {"Tile", {1, 2, 1, 1}},
        {"Pad", {0, 0, 1, 2, 0, 0, 1, -1}},
        {"Gather", {0, 1, -1}},
        {"Split", {2}},
        {"Unsqueeze", {0, 3}},
        {"ReduceSum", {1, -1}},
        {"CumSum", {2}},
        {"Trilu", {1}}}) {
    auto sample = single(op, {"x", "n"});
    sample.constants("n", numbers);
    list.push_back(sample);
  }
  return list;
}

using Setters = std::vector<std::function<void(std::int64_t)>>;

/// A way to change each whole number of the model that says a size, a place or a choice.
Setters numbers_of(Sample& sample) {
  Setters numbers;
  for (auto& node : *sample.graph().mutable_node()) {
    for (auto& attribute : *node.mutable_attribute()) {
      for (int i = 0; i < attribute.ints_size(); ++i) {
        numbers.emplace_back([&attribute, i](std::int64_t n) { attribute.set_ints(i, n); });
      }
      if (attribute.has_i()) {
        numbers.emplace_back([&attribute](std::int64_t n) { attribute.set_i(n); });
      }
    }
  }
  for (auto& tensor : *sample.graph().mutable_initializer()) {
    for (int i = 0; i < tensor.int64_data_size(); ++i) {
      numbers.emplace_back([&tensor, i](std::int64_t n) { tensor.set_int64_data(i, n); });
    }
  }
  for (auto& input : *sample.graph().mutable_input()) {
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (auto& size : *shape.mutable_dim()) {
      numbers.emplace_back([&size](std::int64_t n) { size.set_dim_value(n); });
    }
  }
  return numbers;
}

/// True when it was accepted and computed.
bool computed(const Sample& sample, const std::filesystem::path& path, Device& device) {
  try {
    const test::MemoryLimit limit(kMemory);
    auto graph = import_model(load_model(sample.save(path))).graph;
    auto plan = make_plan(optimize(std::move(graph), {.inference = true}), {&device});
    StateStore states(device);
    Executor executor(std::move(plan), states);
    executor.run();
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(HostileOnnxRun, what_is_accepted_can_be_computed) {
  const test::TemporaryFolder folder;
  const auto device = open_device("cpu", {.threads = 1});
  std::mt19937 random(1);
  const char* asked = std::getenv("TRIPTYCH_HOSTILE_MODELS");
  const int rounds = asked != nullptr ? std::stoi(asked) : 40;
  for (auto& original : samples()) {
    EXPECT_TRUE(computed(original, folder / "m.onnx", *device))
        << original.model.graph().node(0).op_type();
    for (int round = 0; round < rounds; ++round) {
      Sample sample = original;
      const auto numbers = numbers_of(sample);
      for (auto left = 1 + random() % 3; left > 0; --left) {
        numbers[random() % numbers.size()](kNumbers[random() % std::size(kNumbers)]);
      }
      computed(sample, folder / "m.onnx", *device);
    }
  }
}

}  // namespace
}  // namespace triptych::onnx
