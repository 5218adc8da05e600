// ONNX files that tests make, right and wrong ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onnx.pb.h"
#include "tests/unit/io/test_files.h"

namespace triptych::test {

using Integers = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

inline constexpr int kFloat = 1, kInt64 = 7, kDouble = 11;

/// A model that grows call by call.
class Sample {
 public:
  explicit Sample(std::int64_t opset = 13) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
  }

  onnx_format::Graph& graph() { return *model.mutable_graph(); }

  /// Sizes below 0 are the symbol "batch".
  Sample& input(const std::string& name, const Integers& sizes, int type = kFloat) {
    describe(*graph().add_input(), name, sizes, type);
    return *this;
  }
  Sample& output(const std::string& name, int type = kFloat) {
    auto& value = *graph().add_output();
    value.set_name(name);
    value.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return *this;
  }
  Sample& node(const std::string& op, const Names& inputs, const Names& outputs) {
    auto& added = *graph().add_node();
    added.set_op_type(op);
    for (const auto& name : inputs) added.add_input(name);
    for (const auto& name : outputs) added.add_output(name);
    return *this;
  }
  /// Attributes go to the node that was added last.
  Sample& integers(const std::string& name, const Integers& values) {
    auto& added = attribute(name, 7);
    for (const auto value : values) added.add_ints(value);
    return *this;
  }
  Sample& integer(const std::string& name, std::int64_t value) {
    attribute(name, 2).set_i(value);
    return *this;
  }
  Sample& text(const std::string& name, const std::string& value) {
    attribute(name, 3).set_s(value);
    return *this;
  }
  Sample& number(const std::string& name, float value) {
    attribute(name, 1).set_f(value);
    return *this;
  }
  Sample& texts(const std::string& name, const Names& values) {
    auto& added = attribute(name, 8);
    for (const auto& value : values) added.add_strings(value);
    return *this;
  }
  onnx_format::Tensor& floats(const std::string& name, const Integers& sizes,
                              const std::vector<float>& values) {
    auto& tensor = initializer(name, sizes, kFloat);
    for (const auto value : values) tensor.add_float_data(value);
    return tensor;
  }
  onnx_format::Tensor& constants(const std::string& name, const Integers& values) {
    auto& tensor = initializer(name, {std::ssize(values)}, kInt64);
    for (const auto value : values) tensor.add_int64_data(value);
    return tensor;
  }
  onnx_format::Tensor& initializer(const std::string& name, const Integers& sizes, int type) {
    auto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const auto size : sizes) tensor.add_dims(size);
    return tensor;
  }
  onnx_format::Attribute& attribute(const std::string& name, int type) {
    auto& added = *graph().mutable_node(graph().node_size() - 1)->add_attribute();
    added.set_name(name);
    added.set_type(type);
    return added;
  }

  std::filesystem::path save(const std::filesystem::path& path) const {
    put_file(path, model.SerializeAsString());
    return path;
  }

  onnx_format::Model model;

 private:
  static void describe(onnx_format::ValueInfo& value, const std::string& name,
                       const Integers& sizes, int type) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const auto size : sizes) {
      auto& dimension = *tensor.mutable_shape()->add_dim();
      if (size < 0) {
        dimension.set_dim_param("batch");
      } else {
        dimension.set_dim_value(size);
      }
    }
  }
};

/// y = relu(x w + b) for x: [batch, 2].
inline Sample dense_sample() {
  Sample sample;
  sample.input("x", {-1, 2}).node("MatMul", {"x", "w"}, {"h"}).node("Add", {"h", "b"}, {"s"});
  sample.node("Relu", {"s"}, {"y"}).output("y");
  sample.floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  sample.floats("b", {3}, {-10, 0, 10});
  return sample;
}

/// A convolution with a window, a pooling and a normalisation, which most checks of sizes see.
inline Sample image_sample() {
  Sample sample;
  sample.input("x", {1, 2, 8, 8}).node("Conv", {"x", "w"}, {"h"});
  sample.integers("pads", {1, 1, 1, 1}).integers("strides", {1, 1}).integer("group", 1);
  sample.node("MaxPool", {"h"}, {"p"}).integers("kernel_shape", {2, 2}).integers("strides", {2, 2});
  sample.node("Resize", {"p", "", "scales"}, {"r"}).text("mode", "nearest");
  sample.node("Slice", {"r", "starts", "ends", "axes", "steps"}, {"y"}).output("y");
  sample.floats("w", {2, 2, 3, 3}, std::vector<float>(36, 0.5F));
  sample.floats("scales", {4}, {1, 1, 2, 2});
  sample.constants("starts", {0});
  sample.constants("ends", {4});
  sample.constants("axes", {2});
  sample.constants("steps", {1});
  return sample;
}

}  // namespace triptych::test
