// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/importer.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "core/onnx/element_type.h"
#include "core/onnx/import_graph.h"
#include "core/onnx/node_import.h"
#include "core/onnx/translation_list.h"

namespace triptych::onnx {
namespace {

const std::map<std::string_view, Translate>& translations() {
  static const auto table = [] {
    TranslationList list;
    add_all_translations(list);
    std::map<std::string_view, Translate> result;
    for (const auto& [op, translate] : list) result.emplace(op, translate);
    return result;
  }();
  return table;
}

Shape bound_shape(const ModelValue& input, const ImportOptions& options) {
  const auto given = options.given.find(input.name);
  const Tensor* content = given == options.given.end() ? nullptr : given->second.get();
  const auto rank = static_cast<std::int64_t>(input.shape.size());
  if (content != nullptr && input.has_shape && content->shape().rank() != rank) {
    const bool too_few = content->shape().rank() < rank;
    throw InvalidArgument(
        fmt::format("input \"{}\" has {} dimensions, {}, and the model wants {}; in NumPy, {}",
                    input.name, content->shape().rank(), to_string(content->shape()), rank,
                    too_few ? "array[None] adds one in front" : "array[0] removes the first one"));
  }
  if (!input.has_shape && content == nullptr) {
    throw InvalidArgument(fmt::format("input \"{}\" has no shape in the model", input.name));
  }
  if (!input.has_shape) return content->shape();
  Dims dims;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto& wanted = input.shape[static_cast<std::size_t>(axis)];
    const auto bound = options.bind.find(wanted.symbol);
    const bool is_bound = wanted.size < 0 && bound != options.bind.end();
    if (wanted.size >= 0 || is_bound) {
      dims.push_back(wanted.size >= 0 ? wanted.size : bound->second);
    } else if (content != nullptr) {
      dims.push_back(content->shape()[axis]);
    } else {
      throw InvalidArgument(
          fmt::format("size {} of input \"{}\" is open in the model; {}", axis, input.name,
                      wanted.symbol.empty()
                          ? "it has no name that the option bind could give a number"
                          : fmt::format("give it with the option bind {}=NUMBER", wanted.symbol)));
    }
  }
  Shape shape(std::move(dims));
  if (content != nullptr && content->shape() != shape) {
    throw InvalidArgument(fmt::format("input \"{}\" is {}, the model wants {}", input.name,
                                      to_string(content->shape()), to_string(shape)));
  }
  return shape;
}

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options, bool goes_on)
      : model_(model), options_(options), goes_on_(goes_on) {}

  Import run() {
    require_bound_symbols();
    require_states();
    if (options_.dropout_seed) graph_.draw_from(*options_.dropout_seed);
    for (const auto& input : model_.inputs) add_input(input);
    for (const auto& [name, tensor] : model_.initializers) {
      const auto state = options_.states.find(name);
      values_[name] = state == options_.states.end()
                          ? graph_.add_constant("onnx." + name, tensor)
                          : graph_.add_state(name, tensor, state->second);
    }
    for (const auto& node : model_.nodes) add_node(node);
    const bool whole = std::ranges::all_of(
        result_.nodes, [](const ImportedNode& node) { return node.obstacle.empty(); });
    for (const auto& output : model_.outputs) {
      if (whole) mark_output(output);
    }
    graph_.count_run();
    result_.graph = graph_.take();
    return std::move(result_);
  }

 private:
  /// A symbol that no input has is a slip of the pen.
  void require_bound_symbols() const {
    for (const auto& binding : options_.bind) {
      const auto& symbol = binding.first;
      const auto has = [&](const Dimension& dimension) { return dimension.symbol == symbol; };
      const bool known = std::ranges::any_of(
          model_.inputs, [&](const ModelValue& in) { return std::ranges::any_of(in.shape, has); });
      if (!known) {
        throw InvalidArgument(fmt::format("no input of the model has a size \"{}\"", symbol));
      }
    }
  }

  void require_states() const {
    for (const auto& [name, role] : options_.states) {
      if (model_.initializers.contains(name)) continue;
      throw InvalidArgument(
          fmt::format("the model has no constant \"{}\" that could be a state", name));
    }
  }

  void add_input(const ModelValue& input) {
    const auto given = options_.given.find(input.name);
    auto content = given == options_.given.end() ? nullptr : given->second;
    if (content != nullptr && content->dtype() != input.dtype) {
      const auto in_file = input.dtype == DType::BF16 ? DType::F32 : input.dtype;
      throw InvalidArgument(fmt::format(
          "input \"{}\" is {}, the model wants {}; in NumPy, array.astype(\"{}\") converts it",
          input.name, to_string(content->dtype()), to_string(input.dtype),
          element_type_name(element_number(in_file))));
    }
    const TensorSpec spec{input.dtype, bound_shape(input, options_)};
    require_one_size_per_symbol(input, spec.shape);
    values_[input.name] = graph_.add_input(input.name, spec, std::move(content));
  }

  /// Inputs that share a symbol share its size.
  void require_one_size_per_symbol(const ModelValue& input, const Shape& shape) {
    for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
      const auto& symbol = input.shape[axis].symbol;
      if (symbol.empty()) continue;
      const auto size = shape.dims()[axis];
      const auto known = sizes_.emplace(symbol, size).first->second;
      if (known == size) continue;
      throw InvalidArgument(fmt::format("size \"{}\" of input \"{}\" is {}, and {} elsewhere",
                                        symbol, input.name, size, known));
    }
  }

  void mark_output(const ModelValue& output) {
    const auto value = values_.at(output.name);
    const auto& spec = graph_.spec(value);
    if (spec.dtype != output.dtype) {
      throw IoError(fmt::format("output \"{}\" is {} in the model, and computed as {}", output.name,
                                to_string(output.dtype), to_string(spec.dtype)));
    }
    graph_.mark_output(output.name, value);
  }

  void add_node(const ModelNode& node) {
    ImportedNode done{.name = node.name, .op = node.op, .first = graph_.graph().nodes().size()};
    const auto where = fmt::format("node \"{}\" ({})", node.name, node.op);
    try {
      translate(node);
    } catch (const UnsupportedError& error) {
      if (!goes_on_) throw UnsupportedError(fmt::format("{}: {}", where, error.what()));
      done.obstacle = error.what();
    } catch (const IoError& error) {
      throw IoError(fmt::format("{}: {}", where, error.what()));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", where, error.what()));
    }
    done.last = graph_.graph().nodes().size();
    result_.nodes.push_back(std::move(done));
  }

  void translate(const ModelNode& node) {
    const auto found =
        translations().find(node.domain.empty() ? node.op : node.domain + "." + node.op);
    if (found == translations().end()) {
      throw UnsupportedError(node.domain.empty()
                                 ? "the operator is not supported"
                                 : fmt::format("the operator is of the domain {}", node.domain));
    }
    std::vector<ValueId> inputs;
    for (const auto& input : node.inputs) {
      if (input.empty()) {
        inputs.emplace_back();
      } else if (const auto value = values_.find(input); value != values_.end()) {
        inputs.push_back(value->second);
      } else {
        throw UnsupportedError(
            fmt::format("it reads \"{}\" of a node that is not supported", input));
      }
    }
    graph_.begin_node("onnx." + node.outputs.front());
    NodeImport context(node, model_.opset, graph_, std::move(inputs));
    const auto outputs = found->second(context);
    context.finish();
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= outputs.size() || !outputs[i].valid()) {
        throw UnsupportedError(
            fmt::format("output {} (\"{}\") is not supported", i, node.outputs[i]));
      }
      values_[node.outputs[i]] = outputs[i];
    }
  }

  const Model& model_;
  const ImportOptions& options_;
  bool goes_on_;
  ImportGraph graph_;
  std::unordered_map<std::string, ValueId> values_;
  std::map<std::string, std::int64_t> sizes_;  ///< of symbols
  Import result_;
};

}  // namespace

Import import_model(const Model& model, const ImportOptions& options) {
  return Importer(model, options, false).run();
}

Import survey_model(const Model& model, const ImportOptions& options) {
  return Importer(model, options, true).run();
}

std::vector<std::string> importable_operators() {
  std::vector<std::string> names;
  for (const auto& [name, translate] : translations()) names.emplace_back(name);
  return names;
}

}  // namespace triptych::onnx
