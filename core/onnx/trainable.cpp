// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/trainable.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"

namespace triptych::onnx {
namespace {

/// Inputs of an operator that it learns.
struct WeightInputs {
  std::string_view op;
  std::vector<std::size_t> inputs;
};

const std::vector<WeightInputs>& weight_inputs() {
  static const std::vector<WeightInputs> table = {
      {"Conv", {1, 2}},
      {"ConvTranspose", {1, 2}},
      {"Gemm", {0, 1, 2}},
      {"MatMul", {0, 1}},
      {"Einsum", {0, 1, 2}},
      {"BatchNormalization", {1, 2}},
      {"InstanceNormalization", {1, 2}},
      {"LayerNormalization", {1, 2}},
      {"GroupNormalization", {1, 2}},
      {"PRelu", {1}},
      {"Gather", {0}},
      {"RNN", {1, 2, 3}},
      {"GRU", {1, 2, 3}},
      {"LSTM", {1, 2, 3}},
  };
  return table;
}

constexpr std::array kMovements = {std::string_view("Transpose"), std::string_view("Reshape"),
                                   std::string_view("Unsqueeze"), std::string_view("Squeeze"),
                                   std::string_view("Flatten"),   std::string_view("Identity"),
                                   std::string_view("Cast"),      std::string_view("Expand")};

/// In addition to the movements, operators with a weight as result when they read nothing but
/// weights.
constexpr std::array kOfWeights = {
    std::string_view("Slice"),      std::string_view("Concat"),    std::string_view("Split"),
    std::string_view("Add"),        std::string_view("Sub"),       std::string_view("Mul"),
    std::string_view("Div"),        std::string_view("Sqrt"),      std::string_view("Sigmoid"),
    std::string_view("Tanh"),       std::string_view("Exp"),       std::string_view("Softmax"),
    std::string_view("ReduceMean"), std::string_view("ReduceSum"), std::string_view("ReduceL2")};

constexpr float kMasked = -1e4F;  ///< values that masks add are below

using StateEntry = std::pair<std::string, StateRole>;

constexpr std::size_t kMean = 3, kVariance = 4;  // inputs of BatchNormalization

bool takes_weight(const std::string& op, std::size_t input) {
  const auto entry = std::ranges::find(weight_inputs(), op, &WeightInputs::op);
  return entry != weight_inputs().end() && std::ranges::count(entry->inputs, input) > 0;
}

bool is_operand(const std::string& op) { return op == "Add" || op == "Mul" || op == "Concat"; }

/// True for values that hide elements from a softmax.
bool is_mask(const Tensor& tensor) {
  return tensor.dtype() == DType::F32 &&
         std::ranges::all_of(tensor.as<float>(),
                             [](float value) { return value == 0 || value < kMasked; }) &&
         std::ranges::any_of(tensor.as<float>(), [](float value) { return value != 0; });
}

class Finder {
 public:
  Finder(Model model, const std::vector<std::string>& frozen) : frozen_(frozen), unused_(frozen) {
    result_.model = std::move(model);
  }

  TrainableModel run(bool whole) {
    numbers_are_nodes_ = model().numbers_are_nodes;
    constants_to_initializers();
    part_what_identities_share();
    if (!whole) take_off_last_activation();
    keep_what_first_output_needs();
    for (std::size_t i = 0; i < model().nodes.size(); ++i) prepare_normalization(i);
    find_uses();
    nodes_hold_weights_ = std::ranges::none_of(model().initializers, [&](const auto& entry) {
      return !from_nodes_.contains(entry.first) &&
             learnt_as(*entry.second, entry.first) == As::Weight;
    });
    for (const auto& node : model().nodes) find_states(node);
    require_something_to_learn();
    list_kept();
    restore_constants();
    return std::move(result_);
  }

 private:
  struct Use {
    const ModelNode* node;
    std::size_t input;
  };
  enum class As : std::uint8_t { Nothing, Weight, Operand };

  Model& model() { return result_.model; }

  const Tensor* initializer(const std::string& name) const {
    const auto found = result_.model.initializers.find(name);
    return found == result_.model.initializers.end() ? nullptr : found->second.get();
  }

  bool is_output(const std::string& name) const {
    return std::ranges::count(result_.model.outputs, name, &ModelValue::name) > 0;
  }

  /// Some exporters write weights as nodes.
  void constants_to_initializers() {
    std::erase_if(model().nodes, [&](const ModelNode& node) {
      const bool whole = node.op == "Constant" && node.domain.empty() &&
                         node.attributes.size() == 1 && node.attributes[0].name == "value" &&
                         !is_output(node.outputs.front());
      if (!whole) return false;
      const auto* tensor = std::get_if<TensorPtr>(&node.attributes[0].value);
      if (tensor == nullptr || (*tensor)->dtype() != DType::F32) return false;
      model().initializers.emplace(node.outputs.front(), *tensor);
      from_nodes_.insert(node.outputs.front());
      numbers_are_nodes_ = numbers_are_nodes_ || (*tensor)->elements() == 1;
      return true;
    });
  }

  void part_what_identities_share() {
    std::erase_if(model().nodes, [&](const ModelNode& node) {
      if (node.op != "Identity" || !node.domain.empty() || node.inputs.size() != 1) return false;
      const auto found = model().initializers.find(node.inputs.front());
      if (found == model().initializers.end() || is_output(node.outputs.front())) return false;
      const auto shared = found->second;
      model().initializers.emplace(node.outputs.front(), shared);
      return true;
    });
  }

  void take_off_last_activation() {
    auto& output = model().outputs.front();
    const auto last = std::ranges::find_if(model().nodes, [&](const ModelNode& node) {
      return std::ranges::count(node.outputs, output.name) > 0;
    });
    if (last == model().nodes.end() || !last->domain.empty()) return;
    const bool is_last = last->op == "Sigmoid" || last->op == "Softmax" || last->op == "LogSoftmax";
    if (!is_last || last->inputs.size() != 1 || initializer(last->inputs.front()) != nullptr)
      return;
    result_.last_activation = last->op;
    output.name = last->inputs.front();
    model().nodes.erase(last);
  }

  void keep_what_first_output_needs() {
    result_.outputs_in_file = model().outputs.size();
    model().outputs.resize(1);
    std::set<std::string> needed = {model().outputs.front().name};
    std::vector<ModelNode> nodes;
    for (auto i = model().nodes.size(); i-- > 0;) {
      auto& node = model().nodes[i];
      const bool wanted = std::ranges::any_of(
          node.outputs, [&](const std::string& output) { return needed.contains(output); });
      if (!wanted) continue;
      needed.insert(node.inputs.begin(), node.inputs.end());
      nodes.push_back(std::move(node));
    }
    std::ranges::reverse(nodes);
    model().nodes = std::move(nodes);
    std::erase_if(model().initializers,
                  [&](const auto& entry) { return !needed.contains(entry.first); });
  }

  /// Nodes again, so that the exported model becomes the same network when it is read.
  void restore_constants() {
    std::vector<ModelNode> nodes;
    for (const auto& name : from_nodes_) {
      const auto constant = model().initializers.find(name);
      const bool is_state = std::ranges::count(result_.states, name, &StateEntry::first) > 0;
      if (constant == model().initializers.end() || is_state) continue;
      nodes.push_back({.name = name,
                       .op = "Constant",
                       .domain = {},
                       .inputs = {},
                       .outputs = {name},
                       .attributes = {{"value", constant->second}}});
      model().initializers.erase(constant);
    }
    model().nodes.insert(model().nodes.begin(), nodes.begin(), nodes.end());
  }

  bool is_read(const std::string& name) const {
    return is_output(name) || std::ranges::any_of(result_.model.nodes, [&](const ModelNode& node) {
             return std::ranges::count(node.inputs, name) > 0;
           });
  }

  /// Brings node `i` to its inference form, with statistics of its own.
  void prepare_normalization(std::size_t i) {
    auto& node = model().nodes[i];
    if (node.op != "BatchNormalization" || !node.domain.empty()) return;
    ++result_.batch_normalizations;
    std::erase_if(node.attributes,
                  [](const NodeAttribute& one) { return one.name == "training_mode"; });
    const auto more = node.outputs;
    for (std::size_t output = 1; output < more.size(); ++output) {
      if (more[output].empty() || !is_read(more[output])) continue;
      throw UnsupportedError(
          fmt::format("node \"{}\" (BatchNormalization): its statistics are read as \"{}\"; export "
                      "the network for inference",
                      node.name, more[output]));
    }
    node.outputs.resize(1);
    for (const auto input : {kMean, kVariance}) {
      if (input >= node.inputs.size()) return;
      const auto name = node.inputs[input];
      const auto found = model().initializers.find(name);
      if (found == model().initializers.end() || statistics_.insert(name).second) continue;
      const auto shared = found->second;
      node.inputs[input] = fmt::format("{}.{}", name, i);
      statistics_.insert(node.inputs[input]);
      model().initializers.emplace(node.inputs[input], shared);
    }
  }

  void find_uses() {
    for (const auto& node : model().nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        uses_[node.inputs[i]].push_back({&node, i});
      if (node.op == "Reshape") reshaped_.insert(node.outputs.front());
      if (is_of_initializers(node)) fixed_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  /// True when it computes nothing from the network's inputs.
  bool is_of_initializers(const ModelNode& node) const {
    return std::ranges::all_of(node.inputs, [&](const std::string& name) {
      return name.empty() || initializer(name) != nullptr || fixed_.contains(name);
    });
  }

  bool is_frozen(const std::string& name) {
    const auto fits = [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    };
    std::erase_if(unused_, fits);
    return std::ranges::any_of(frozen_, fits);
  }

  /// True for scale and bias of a normalisation of instances that stands for one of groups, as
  /// exporters write it: between reshapes, with numbers that are not learnt.
  bool is_group_normalization(const ModelNode& node, std::size_t input) const {
    return node.op == "InstanceNormalization" && input > 0 && reshaped_.contains(node.inputs[0]);
  }

  /// True when `node` passes its operand on to be a weight, under another shape or as a part.
  bool passes_on(const ModelNode& node, std::size_t input, const Tensor& tensor) const {
    if (input == 0 && std::ranges::count(kMovements, node.op) > 0) return true;
    return has_size(tensor) && fixed_.contains(node.outputs.front()) &&
           std::ranges::count(kOfWeights, node.op) > 0;
  }

  /// False for a single number that may be one of the code's.
  bool has_size(const Tensor& tensor) const { return tensor.elements() > 1 || numbers_are_nodes_; }

  As learnt_as(const Tensor& tensor, const std::string& name) const {
    const bool from_node = from_nodes_.contains(name);
    if (from_node && !nodes_hold_weights_) return As::Nothing;
    const bool may_add = !from_node && has_size(tensor) && !is_mask(tensor);
    auto result = As::Nothing;
    std::vector<std::string> same = {name};
    for (std::size_t i = 0; i < same.size(); ++i) {
      const auto uses = uses_.find(same[i]);
      if (uses == uses_.end()) continue;
      for (const auto& [node, input] : uses->second) {
        if (!node->domain.empty() || is_group_normalization(*node, input)) continue;
        if (takes_weight(node->op, input)) return As::Weight;
        if (passes_on(*node, input, tensor)) {
          for (const auto& output : node->outputs)
            if (std::ranges::count(same, output) == 0) same.push_back(output);
        } else if (may_add && is_operand(node->op)) {
          result = As::Operand;
        }
      }
    }
    return result;
  }

  /// True when mean and variance of a batch normalisation are its own to follow.
  bool follows_statistics(const ModelNode& node) {
    if (node.op != "BatchNormalization" || !node.domain.empty()) return false;
    bool follows = node.inputs.size() > kVariance;
    for (auto input = kMean; follows && input <= kVariance; ++input) {
      const auto* tensor = initializer(node.inputs[input]);
      follows =
          tensor != nullptr && tensor->dtype() == DType::F32 && !is_frozen(node.inputs[input]);
    }
    return follows;
  }

  void find_states(const ModelNode& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto& name = node.inputs[i];
      const auto* tensor = initializer(name);
      if (tensor == nullptr || statistics_.contains(name) || !seen_.insert(name).second) continue;
      const auto as = learnt_as(*tensor, name);
      if (as == As::Nothing) continue;
      if (tensor->dtype() == DType::F16 || tensor->dtype() == DType::BF16) {
        throw UnsupportedError(fmt::format(
            "the parameter \"{}\" is {}; parameters are trained in float32: export them so", name,
            to_string(tensor->dtype())));
      }
      if (tensor->dtype() != DType::F32) continue;
      if (is_frozen(name)) {
        some_frozen_ = true;
        continue;
      }
      result_.states.emplace_back(name, StateRole::Parameter);
      const bool is_vector = tensor->shape().rank() == 1 && tensor->elements() > 1;
      if (as == As::Operand && !is_vector) result_.operands.push_back(name);
      if (uses_.at(name).size() > 1) result_.shared.push_back(name);
    }
    if (!follows_statistics(node)) return;
    for (const auto input : {kMean, kVariance})
      result_.states.emplace_back(node.inputs[input], StateRole::Statistic);
  }

  void require_something_to_learn() {
    for (const auto& [name, tensor] : model().initializers) is_frozen(name);
    if (!unused_.empty()) {
      throw InvalidArgument(
          fmt::format("the option freeze: \"{}\" fits no initialiser of the model",
                      fmt::join(unused_, "\", \"")));
    }
    const auto learns = [](const auto& state) { return state.second == StateRole::Parameter; };
    if (std::ranges::any_of(result_.states, learns)) return;
    if (some_frozen_) {
      throw UnsupportedError(
          "the model has no parameter that can be trained: the option freeze keeps all of its "
          "weights as they are; name fewer");
    }
    throw UnsupportedError(
        "the model has no parameter that can be trained: no weight in float32 is an initialiser; "
        "export the network with its weights");
  }

  void list_kept() {
    for (const auto& [name, tensor] : model().initializers) {
      const bool is_float = tensor->dtype() == DType::F32;
      const bool own = from_nodes_.contains(name) || statistics_.contains(name) || is_frozen(name);
      if (!is_float || own || std::ranges::count(result_.states, name, &StateEntry::first) > 0)
        continue;
      const auto uses = uses_.find(name);
      const bool of_groups =
          uses != uses_.end() && std::ranges::all_of(uses->second, [&](const Use& use) {
            return is_group_normalization(*use.node, use.input);
          });
      if (!of_groups) result_.kept.push_back(name);
    }
  }

  std::vector<std::string> frozen_, unused_;
  TrainableModel result_;
  std::set<std::string> from_nodes_;  ///< initialisers that were nodes
  std::set<std::string> statistics_;  ///< initialisers that a batch normalisation has
  std::set<std::string> reshaped_;
  std::set<std::string> fixed_;  ///< computed of initialisers alone
  bool nodes_hold_weights_ = false, some_frozen_ = false;
  bool numbers_are_nodes_ = false;  ///< a constant factor in the code is no initialiser
  std::set<std::string> seen_;
  std::unordered_map<std::string, std::vector<Use>> uses_;
};

}  // namespace

TrainableModel make_trainable(Model model, const std::vector<std::string>& frozen, bool whole) {
  return Finder(std::move(model), frozen).run(whole);
}

}  // namespace triptych::onnx
