// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/model_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/file_text.h"
#include "core/base/memory_budget.h"
#include "core/io/input_file.h"
#include "core/onnx/element_type.h"
#include "core/onnx/tensor_reader.h"
#include "core/onnx/wire.h"

namespace triptych::onnx {
namespace {

constexpr std::int64_t kFirstIr = 3;
constexpr std::int64_t kLastIr = 12;
constexpr std::int64_t kMaxFile = std::int64_t{1} << 31;  // protobuf's own
constexpr int kMostAttributes = 64;

bool is_onnx_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

/// The version of ONNX's own operators. 0: the file says none.
std::int64_t opset_of(const onnx_format::Model& file) {
  std::optional<std::int64_t> version;
  for (const auto& set : file.opset_import()) {
    if (!is_onnx_domain(set.domain())) continue;
    if (version) throw IoError("the version of ONNX's operators stands twice");
    version = set.version();
  }
  if (!version) return 0;
  if (*version < 1) throw IoError(fmt::format("operator set {}", *version));
  if (*version < kFirstOpset || *version > kLastOpset) {
    throw UnsupportedError(fmt::format("operator set {}; {} to {} can be imported", *version,
                                       kFirstOpset, kLastOpset));
  }
  return *version;
}

void check_version(const onnx_format::Model& file) {
  if (!file.has_ir_version() || !file.has_graph()) throw IoError("not an ONNX model");
  if (file.ir_version() < 1) throw IoError(fmt::format("format version {}", file.ir_version()));
  if (file.ir_version() < kFirstIr || file.ir_version() > kLastIr) {
    throw UnsupportedError(fmt::format("format version {}; {} to {} can be imported",
                                       file.ir_version(), kFirstIr, kLastIr));
  }
}

Dimension dimension(const onnx_format::Shape::Dimension& stored, const std::string& of) {
  if (!stored.has_dim_value()) {
    return {-1, stored.dim_param().empty() ? "" : checked_name(stored.dim_param(), of)};
  }
  // Old exporters write 0, or a negative number, for a size that is not known.
  if (stored.dim_value() < 0) return {};
  return {stored.dim_value(), ""};
}

ModelValue value_of(const onnx_format::ValueInfo& stored, const std::string& role) {
  ModelValue value{.name = checked_name(stored.name(), role)};
  const auto of = fmt::format("{} \"{}\"", role, value.name);
  if (!stored.type().has_tensor_type()) {
    throw UnsupportedError(fmt::format("{} is not a tensor", of));
  }
  const auto& type = stored.type().tensor_type();
  const auto element = require_element_type(type.elem_type(), of);
  value.dtype = element.dtype;
  value.is_double = element.is_double;
  value.has_shape = type.has_shape();
  if (type.shape().dim_size() > kMaxRank) throw IoError(fmt::format("{} has too many sizes", of));
  for (const auto& size : type.shape().dim()) value.shape.push_back(dimension(size, of));
  return value;
}

/// True for an attribute that asks for a result in float64.
/// The kinds of initialisers that PyTorch's exporter states: "PARAMETER", "BUFFER".
std::map<std::string, std::string> stated_kinds(const onnx_format::Graph& graph) {
  std::map<std::string, std::string> kinds;
  for (const auto& bytes : graph.value_info()) {
    onnx_format::ValueInfo info;
    if (!info.ParseFromString(bytes)) throw IoError("a description of a value is broken");
    for (const auto& entry : info.metadata_props()) {
      const bool is_kind = entry.key() == kKindOfInitializer;
      if (is_kind) kinds[info.name()] = entry.value();
    }
  }
  return kinds;
}

class ModelReader {
 public:
  /// Moves the tensors out of `file` one by one, so that memory holds each tensor once.
  ModelReader(onnx_format::Model& file, const std::filesystem::path& path)
      : file_(file), tensors_(path) {}

  Model read() {
    check_version(file_);
    model_.opset = opset_of(file_);
    const auto& version = file_.producer_version();
    model_.producer = shown(file_.producer_name() + (version.empty() ? "" : " " + version));
    auto& graph = *file_.mutable_graph();
    if (graph.sparse_initializer_size() > 0) {
      throw UnsupportedError("it has sparse initialisers");
    }
    kinds_ = stated_kinds(graph);
    // Its exporter that traces (format 9 at most) writes numbers as nodes. The other one may make
    // initialisers of them, and states kinds, unless a conversion to another operator set lost
    // them.
    const bool from_pytorch = model_.producer.starts_with("pytorch");
    model_.numbers_are_nodes = from_pytorch && (file_.ir_version() < 10 || !kinds_.empty());
    graph.clear_value_info();
    for (auto& stored : *graph.mutable_initializer()) {
      onnx_format::Tensor taken;
      taken.Swap(&stored);
      read_initializer(taken);
    }
    for (const auto& stored : graph.input()) read_input(stored);
    for (int i = 0; i < graph.node_size(); ++i) read_node(graph.node(i), i);
    for (const auto& stored : graph.output()) read_output(stored);
    if (model_.outputs.empty()) throw IoError("the graph has no output");
    model_.has_doubles = model_.has_doubles || tensors_.has_doubles();
    return std::move(model_);
  }

 private:
  void define(const std::string& name, const std::string& what) {
    if (!defined_.insert(name).second) {
      throw IoError(fmt::format("{} \"{}\" is defined a second time", what, name));
    }
  }

  void read_initializer(const onnx_format::Tensor& stored) {
    const auto name = checked_name(stored.name(), "an initialiser");
    define(name, "initialiser");
    auto tensor = tensors_.read(stored, fmt::format("initialiser \"{}\"", name));
    if (is_number_of_code(name, *tensor)) {
      model_.nodes.push_back(
          {.name = name, .op = "Constant", .outputs = {name}, .attributes = {{"value", tensor}}});
    } else {
      model_.initializers.emplace(name, std::move(tensor));
    }
  }

  /// True for a constant of the module's code, which PyTorch's optimizer makes an initialiser. It
  /// becomes a node again, as without optimizer, because the choice of trained parameters depends
  /// on that.
  bool is_number_of_code(const std::string& name, const Tensor& tensor) const {
    if (kinds_.empty() || tensor.dtype() != DType::F32) return false;
    const auto kind = kinds_.find(name);
    return kind == kinds_.end() || (kind->second != "PARAMETER" && kind->second != "BUFFER");
  }

  void read_input(const onnx_format::ValueInfo& stored) {
    const auto name = checked_name(stored.name(), "an input");
    if (!inputs_.insert(name).second) {
      throw IoError(fmt::format("input \"{}\" is defined a second time", name));
    }
    if (defined_.contains(name)) return;  // an initialiser gives it
    define(name, "input");
    model_.inputs.push_back(value_of(stored, "input"));
    model_.has_doubles = model_.has_doubles || model_.inputs.back().is_double;
  }

  void read_output(const onnx_format::ValueInfo& stored) {
    auto value = value_of(stored, "output");
    if (!defined_.contains(value.name)) {
      throw IoError(fmt::format("output \"{}\" is computed by no node", value.name));
    }
    if (!outputs_.insert(value.name).second) {
      throw IoError(fmt::format("output \"{}\" stands twice", value.name));
    }
    model_.outputs.push_back(std::move(value));
  }

  void read_node(const onnx_format::Node& stored, int index) {
    ModelNode node;
    node.name = stored.name().empty() ? fmt::format("#{}", index)
                                      : checked_name(stored.name(), fmt::format("node #{}", index));
    node.op = checked_name(stored.op_type(), fmt::format("the operator of node \"{}\"", node.name));
    const auto of = fmt::format("node \"{}\" ({})", node.name, node.op);
    if (!is_onnx_domain(stored.domain())) {
      node.domain = checked_name(stored.domain(), of);
    } else if (model_.opset == 0) {
      throw IoError(fmt::format("{}: the file does not say which operator set it uses", of));
    }
    for (const auto& input : stored.input()) {
      if (!input.empty() && !defined_.contains(input)) {
        throw IoError(
            fmt::format("{} reads \"{}\", which nothing before it defines", of, shown(input)));
      }
      node.inputs.push_back(input);
    }
    if (stored.attribute_size() > kMostAttributes) {
      throw IoError(fmt::format("{} has {} attributes", of, stored.attribute_size()));
    }
    for (const auto& attribute : stored.attribute()) read_attribute(attribute, node, of);
    for (const auto& output : stored.output()) {
      node.outputs.push_back(output.empty() ? "" : checked_name(output, of));
      if (!output.empty()) define(output, of + ": its output");
    }
    if (std::ranges::all_of(node.outputs, &std::string::empty)) {
      throw IoError(fmt::format("{} has no output", of));
    }
    model_.nodes.push_back(std::move(node));
  }

  void read_attribute(const onnx_format::Attribute& stored, ModelNode& node,
                      const std::string& of) {
    NodeAttribute attribute{checked_name(stored.name(), "an attribute of " + of), Unread{}};
    for (const auto& other : node.attributes) {
      if (other.name == attribute.name) {
        throw IoError(fmt::format("{}: attribute \"{}\" stands twice", of, attribute.name));
      }
    }
    const auto where = fmt::format("{}, attribute \"{}\"", of, attribute.name);
    if (!stored.ref_attr_name().empty()) {
      throw IoError(fmt::format("{} refers to a function's, outside of one", where));
    }
    switch (type_of(stored, where)) {
      case kFloat:
        attribute.value = stored.f();
        break;
      case kInt:
        attribute.value = stored.i();
        model_.has_doubles = model_.has_doubles || names_double(attribute.name, stored.i());
        break;
      case kString:
        attribute.value = shown(stored.s());
        break;
      case kTensor:
        attribute.value = read_tensor(stored.t(), where);
        break;
      case kFloats:
        attribute.value = std::vector<float>(stored.floats().begin(), stored.floats().end());
        break;
      case kInts:
        attribute.value = std::vector<std::int64_t>(stored.ints().begin(), stored.ints().end());
        break;
      case kStrings: {
        std::vector<std::string> texts;
        for (const auto& text : stored.strings()) texts.push_back(shown(text));
        attribute.value = std::move(texts);
        break;
      }
      case kGraph:
        attribute.value = Unread{"a graph"};
        break;
      default:
        attribute.value = Unread{"of a kind that is not read"};
    }
    node.attributes.push_back(std::move(attribute));
  }

  /// A tensor of an element type that Triptych lacks is reported when a node needs it.
  decltype(NodeAttribute::value) read_tensor(const onnx_format::Tensor& stored,
                                             const std::string& where) {
    if (element_type(stored.data_type()) || stored.data_type() <= 0) {
      return tensors_.read(stored, where);
    }
    return Unread{"a tensor of " + element_type_name(stored.data_type())};
  }

  /// The kind that the attribute says, and that its value must be of.
  static int type_of(const onnx_format::Attribute& stored, const std::string& where) {
    const std::pair<int, bool> present[] = {
        {kFloat, stored.has_f()},        {kInt, stored.has_i()},
        {kString, stored.has_s()},       {kTensor, stored.has_t()},
        {kGraph, stored.has_g()},        {kFloats, stored.floats_size() > 0},
        {kInts, stored.ints_size() > 0}, {kStrings, stored.strings_size() > 0}};
    int found = 0;
    for (const auto& [type, is_there] : present) {
      if (!is_there) continue;
      if (found != 0) throw IoError(fmt::format("{} has values of several types", where));
      found = type;
    }
    if (found != 0 && stored.has_type() && stored.type() != found) {
      throw IoError(fmt::format("{} has a value of another type than it says", where));
    }
    const auto type = stored.has_type() ? stored.type() : found;
    if (type < kFloat) throw IoError(fmt::format("{} has no type", where));
    if (found == 0 && type == kTensor) throw IoError(fmt::format("{} has no value", where));
    return type;
  }

  onnx_format::Model& file_;
  TensorReader tensors_;
  Model model_;
  std::map<std::string, std::string> kinds_;
  std::set<std::string> defined_;
  std::set<std::string> inputs_;
  std::set<std::string> outputs_;
};

onnx_format::Model parsed(const std::string& bytes, const ReadLimits& limits) {
  check_wire(bytes, limits.parts);
  memory_budget().require(bytes.size(), "the model");
  onnx_format::Model file;
  if (!file.ParseFromString(bytes)) throw IoError("not an ONNX model: its messages are broken");
  return file;
}

}  // namespace

Model load_model(const std::filesystem::path& path, const ReadLimits& limits) {
  const InputFile input(path, kMaxFile);
  return input.named([&] {
    auto file = parsed(input.read_text(0, input.size()), limits);
    return ModelReader(file, path).read();
  });
}

}  // namespace triptych::onnx
