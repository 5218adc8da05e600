// ONNX files and their graphs: any bytes are refused, or become a graph that passes the verifier.
// Half of the mutations change a model's parts, not its bytes.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <random>

#include "core/base/error.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/onnx/model_writer.h"
#include "core/onnx/trainable.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/onnx/samples.h"

namespace triptych::fuzz {
namespace {

constexpr std::size_t kMemory = 1 << 20;

/// Chooses among the parts of a model.
class Mutation {
 public:
  explicit Mutation(unsigned seed) : random_(seed) {}

  void apply(onnx_format::Model& model) {
    auto& graph = *model.mutable_graph();
    switch (random_() % 7) {
      case 0:
        return change_operator(graph);
      case 1:
        return change_attribute(graph);
      case 2:
        return change_input(graph);
      case 3:
        return change_constant(graph);
      case 4:
        return change_size(graph);
      case 5:
        if (model.opset_import_size() > 0)
          model.mutable_opset_import(0)->set_version(static_cast<std::int64_t>(random_() % 24));
        return;
      default:
        if (graph.node_size() > 0) *graph.add_node() = graph.node(any(graph.node_size()));
    }
  }

 private:
  int any(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  std::int64_t number() {
    constexpr std::int64_t kNumbers[] = {0, 1, -1, 2, 3, 4, 7, 8, -2, 255, 1LL << 31, INT64_MAX};
    return kNumbers[random_() % std::size(kNumbers)];
  }

  void change_operator(onnx_format::Graph& graph) {
    static const auto names = onnx::importable_operators();
    if (graph.node_size() == 0) return;
    graph.mutable_node(any(graph.node_size()))->set_op_type(names[random_() % names.size()]);
  }

  void change_attribute(onnx_format::Graph& graph) {
    if (graph.node_size() == 0) return;
    auto& node = *graph.mutable_node(any(graph.node_size()));
    constexpr const char* kNames[] = {"axis", "axes",      "keepdims",  "group",     "strides",
                                      "pads", "mode",      "perm",      "to",        "kernel_shape",
                                      "k",    "dilations", "blocksize", "ceil_mode", "epsilon"};
    auto& attribute = node.attribute_size() > 0 && random_() % 2 == 0
                          ? *node.mutable_attribute(any(node.attribute_size()))
                          : *node.add_attribute();
    if (!attribute.has_name()) attribute.set_name(kNames[random_() % std::size(kNames)]);
    if (attribute.ints_size() > 0) {
      attribute.set_ints(any(attribute.ints_size()), number());
    } else if (random_() % 2 == 0) {
      attribute.Clear();
      attribute.set_name(kNames[random_() % std::size(kNames)]);
      attribute.set_type(7);
      for (auto left = random_() % 5; left > 0; --left) attribute.add_ints(number());
    } else {
      attribute.set_type(2);
      attribute.set_i(number());
    }
  }

  /// The name of an input, an initialiser or an output of a node. "" when there is none.
  std::string any_value(const onnx_format::Graph& graph) {
    switch (random_() % 3) {
      case 0:
        return graph.input_size() == 0 ? "" : graph.input(any(graph.input_size())).name();
      case 1:
        return graph.initializer_size() == 0
                   ? ""
                   : graph.initializer(any(graph.initializer_size())).name();
      default:
        break;
    }
    if (graph.node_size() == 0) return "";
    const auto& node = graph.node(any(graph.node_size()));
    return node.output_size() == 0 ? "" : node.output(any(node.output_size()));
  }

  void change_input(onnx_format::Graph& graph) {
    if (graph.node_size() == 0) return;
    auto& node = *graph.mutable_node(any(graph.node_size()));
    if (node.input_size() > 0 && random_() % 3 != 0) {
      node.set_input(any(node.input_size()), any_value(graph));
    } else {
      node.add_input(any_value(graph));
    }
  }

  void change_constant(onnx_format::Graph& graph) {
    if (graph.initializer_size() == 0) return;
    auto& tensor = *graph.mutable_initializer(any(graph.initializer_size()));
    if (tensor.int64_data_size() > 0) {
      tensor.set_int64_data(any(tensor.int64_data_size()), number());
    } else if (tensor.dims_size() > 0) {
      tensor.set_dims(any(tensor.dims_size()), number());
    }
  }

  void change_size(onnx_format::Graph& graph) {
    if (graph.input_size() == 0) return;
    auto& type = *graph.mutable_input(any(graph.input_size()))->mutable_type();
    auto& shape = *type.mutable_tensor_type()->mutable_shape();
    if (shape.dim_size() == 0 || random_() % 4 == 0) shape.add_dim();
    shape.mutable_dim(any(shape.dim_size()))->set_dim_value(number());
  }

  std::mt19937 random_;
};

/// Every open size is 2.
onnx::ImportOptions options_for(const onnx::Model& model) {
  onnx::ImportOptions options;
  for (const auto& input : model.inputs) {
    for (const auto& dimension : input.shape) {
      if (!dimension.symbol.empty()) options.bind[dimension.symbol] = 2;
    }
  }
  return options;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> list = {test::dense_sample().model.SerializeAsString(),
                                   test::image_sample().model.SerializeAsString()};
  for (const auto& op : onnx::importable_operators()) {
    test::Sample sample(op == "GroupNormalization" ? 21 : 17);
    sample.input("x", {-1, 4, 6, 6}).node(op, {"x", "w", "b"}, {"y"}).output("y");
    sample.floats("w", {4, 4, 1, 1}, std::vector<float>(16, 0.5F));
    sample.floats("b", {4}, {1, 2, 3, 4});
    sample.constants("n", {0, 1, 1, -1});
    list.push_back(sample.model.SerializeAsString());
  }
  return list;
}

}  // namespace triptych::fuzz

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  triptych::onnx_format::Model model;
  if (seed % 2 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, most);
  triptych::fuzz::Mutation(seed).apply(model);
  const auto text = model.SerializeAsString();
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triptych;  // NOLINT: a function outside of the namespace
  constexpr std::int64_t kMostParts = 1 << 12;
  try {
    const test::MemoryLimit limit(fuzz::kMemory);
    const auto model = onnx::load_model(fuzz::file_of(data, size), {.parts = kMostParts});
    const auto options = fuzz::options_for(model);
    const auto survey = onnx::survey_model(model, options);
    verify(survey.graph);
    onnx::encode_model(model);
    auto trainable_options = options;
    const auto trainable = onnx::make_trainable(model);
    trainable_options.states.insert(trainable.states.begin(), trainable.states.end());
    verify(onnx::import_model(trainable.model, trainable_options).graph);
  } catch (const Error&) {
  }
  return 0;
}
