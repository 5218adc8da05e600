// Samples of ONNX files, imported and evaluated by the references of their operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/reference.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "tests/unit/onnx/samples.h"

namespace triptych::test {

inline constexpr int kUint8 = 2, kInt8 = 3, kInt32 = 6, kBool = 9, kFloat16 = 10;

inline onnx::Model loaded(const Sample& sample) {
  const TemporaryFolder folder;
  return onnx::load_model(sample.save(folder / "m.onnx"));
}

inline onnx::Import imported(const Sample& sample, const onnx::ImportOptions& options = {}) {
  return onnx::import_model(loaded(sample), options);
}

/// The outputs for inputs that are unknown while the model is imported.
inline std::vector<RefTensor> outputs_of(const Sample& sample,
                                         const std::map<std::string, std::vector<double>>& inputs) {
  const auto graph = imported(sample).graph;
  std::unordered_map<ValueId, RefTensor> given;
  for (const auto& [name, values] : inputs) {
    const auto id = graph.find(name);
    given.emplace(id, RefTensor{graph.spec(id), values});
  }
  const auto values = evaluate_reference(graph, std::move(given));
  std::vector<RefTensor> outputs;
  for (const auto& output : graph.outputs()) outputs.push_back(values[output.value.index()]);
  return outputs;
}

/// The values of the first output.
inline std::vector<double> output_of(const Sample& sample,
                                     const std::map<std::string, std::vector<double>>& inputs) {
  return outputs_of(sample, inputs).front().values;
}

inline void expect_refused(const Sample& sample, const std::string& message) {
  EXPECT_THAT([&] { imported(sample); }, testing::ThrowsMessage<Error>(testing::HasSubstr(message)))
      << message;
}

/// One node from "x" to "y".
inline Sample one_node(const std::string& op, const Integers& sizes, std::int64_t opset = 13,
                       int type = kFloat) {
  Sample sample(opset);
  sample.input("x", sizes, type).node(op, {"x"}, {"y"}).output("y", type);
  return sample;
}

/// Matches these values within 1e-5.
inline auto close_to(std::vector<double> values) {
  return ::testing::Pointwise(::testing::DoubleNear(1e-5), std::move(values));
}

}  // namespace triptych::test
