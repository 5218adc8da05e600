// `triptych import`: the supported nodes of an ONNX file, with backend and contract, before
// anything runs.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "backends/all_backends.h"
#include "core/base/console.h"
#include "core/base/list_text.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/onnx_model.h"
#include "experiments/app/output.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

constexpr Contract kContracts[] = {Contract::F32, Contract::Bf16, Contract::Bf16Exact};

struct ImportCommandOptions {
  OnnxModelOptions model;
  std::string backends;
};

std::vector<std::string> backends_in(const std::string& text) {
  if (!text.empty()) return split_list(text);
  std::vector<std::string> names;
  for (const auto* backend : all_backends()) {
    if (backend->availability().available) names.emplace_back(backend->name());
  }
  return names;
}

/// The node alone, its operands as inputs or constants.
Graph graph_of(const Graph& graph, const Node& node) {
  Graph alone;
  std::map<ValueId, ValueId> own;
  for (const auto id : node.inputs) {
    if (own.contains(id)) continue;
    const auto& value = graph.value(id);
    own[id] = value.data != nullptr ? alone.add_constant(value.name, value.data)
                                    : alone.add_input(value.name, value.spec);
  }
  std::vector<ValueId> inputs;
  for (const auto id : node.inputs) inputs.push_back(own.at(id));
  const auto outputs = alone.add_node(node.op, inputs, node.name);
  alone.mark_output("y", outputs.front());
  return alone;
}

/// Why `device` does not run the node under the options' contract. Empty: it does.
std::string refusal_of(const Graph& graph, const Node& node, const DeviceSet& machine,
                       const PlacementOptions& options) {
  try {
    auto alone = graph_of(graph, node);
    for (std::size_t i = 0; i < alone.nodes().size();) {
      const auto& one = alone.nodes()[i];
      const bool whole = !one.op->composite() || accepts(machine.device(), alone, one, options);
      if (!whole) alone.expand_composite(one.id);
      if (whole) ++i;
    }
    place(alone, machine.devices(), options);
    return {};
  } catch (const UnsupportedError& error) {
    return error.what();
  }
}

/// Support of one node of the model on one backend.
struct Support {
  std::vector<std::string> contracts;
  std::string refusal;  ///< of the first contract that has one
};

class Surveyor {
 public:
  Surveyor(const onnx::Import& import, const std::string& backend)
      : import_(import), machine_({.backend = backend}), name_(backend) {}

  const std::string& name() const { return name_; }

  Support support_of(const onnx::ImportedNode& node) const {
    Support support;
    for (const auto contract : kContracts) {
      auto refusal = refusal_of_all(node, contract);
      if (refusal.empty()) {
        support.contracts.emplace_back(to_string(contract));
      } else if (support.refusal.empty()) {
        support.refusal = std::move(refusal);
      }
    }
    return support;
  }

 private:
  std::string refusal_of_all(const onnx::ImportedNode& node, Contract contract) const {
    auto options = machine_.plan_options().placement;
    options.contract = contract;
    options.chooser = nullptr;
    for (auto i = node.first; i < node.last; ++i) {
      auto refusal = refusal_of(import_.graph, import_.graph.nodes()[i], machine_, options);
      if (!refusal.empty()) return refusal;
    }
    return {};
  }

  const onnx::Import& import_;
  DeviceSet machine_;
  std::string name_;
};

/// The operators that a node of the model becomes, each once.
std::vector<std::string> operators_of(const onnx::Import& import, const onnx::ImportedNode& node) {
  std::vector<std::string> names;
  for (auto i = node.first; i < node.last; ++i) {
    std::string name(import.graph.nodes()[i].op->name());
    if (std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  }
  return names;
}

page::Json node_json(const onnx::Import& import, const onnx::ImportedNode& node,
                     const std::vector<Surveyor>& surveyors) {
  page::Json backends = page::Json::array();
  for (const auto& surveyor : surveyors) {
    const auto support = node.obstacle.empty() ? surveyor.support_of(node) : Support{};
    backends.push_back({{"backend", surveyor.name()},
                        {"contracts", support.contracts},
                        {"refusal", support.refusal}});
  }
  return {{"node", node.name},
          {"operator", node.op},
          {"supported", node.obstacle.empty()},
          {"obstacle", node.obstacle},
          {"becomes", operators_of(import, node)},
          {"backends", std::move(backends)}};
}

std::string words(const page::Json& list, const char* none) {
  return list.empty() ? none
                      : fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), " "));
}

void print_nodes(const page::Json& nodes, const std::vector<Surveyor>& surveyors) {
  std::vector<std::string> header = {"node", "operator", "becomes"};
  for (const auto& surveyor : surveyors) header.push_back(surveyor.name());
  page::TextTable table(header);
  std::size_t at_load = 0;
  for (const auto& node : nodes) {
    const bool supported = node["supported"].get<bool>();
    if (supported && node["becomes"].empty()) {
      ++at_load;
      continue;
    }
    std::vector<std::string> row = {node["node"].get<std::string>(),
                                    node["operator"].get<std::string>(),
                                    words(node["becomes"], "-")};
    for (const auto& backend : node["backends"]) row.push_back(words(backend["contracts"], "-"));
    table.add(std::move(row));
  }
  table.print();
  if (at_load > 0)
    print_text("{} known at load, or without effect\n",
               counted(static_cast<std::int64_t>(at_load), "more node"));
}

/// Each obstacle and refusal once, with the first node that has it.
void print_reasons(const page::Json& nodes) {
  std::set<std::string> told;
  for (const auto& node : nodes) {
    const auto where = fmt::format("{} ({})", node["node"].get<std::string>(),
                                   node["operator"].get<std::string>());
    const auto tell = [&](const std::string& whose, const std::string& reason) {
      if (reason.empty() || !told.insert(whose + node["operator"].get<std::string>()).second)
        return;
      const auto text = whose.empty() ? reason : fmt::format("{}: {}", whose, with_dashes(reason));
      print_text("{}\n", page::wrapped(fmt::format("{}: {}", where, text), 2));
    };
    tell("", node["obstacle"].get<std::string>());
    for (const auto& backend : node["backends"]) {
      tell(backend["backend"].get<std::string>(), backend["refusal"].get<std::string>());
    }
  }
}

void import(const ImportCommandOptions& options, Context& context) {
  const auto model = options.model.load();
  const auto survey = onnx::survey_model(model, options.model.import_options());
  std::vector<Surveyor> surveyors;
  for (const auto& name : backends_in(options.backends)) surveyors.emplace_back(survey, name);
  page::Json nodes = page::Json::array();
  for (const auto& node : survey.nodes) nodes.push_back(node_json(survey, node, surveyors));
  const auto missing = std::ranges::count_if(
      survey.nodes, [](const onnx::ImportedNode& node) { return !node.obstacle.empty(); });
  if (missing > 0) context.exit_code = kUnsupported;
  if (context.json) {
    print_document("import", page::Json::array({{{"model", options.model.file},
                                                 {"opset", model.opset},
                                                 {"producer", model.producer},
                                                 {"nodes", std::move(nodes)}}}));
    return;
  }
  print_nodes(nodes, surveyors);
  print_reasons(nodes);
  print_text("{} of operator set {}, {} of them not supported\n",
             counted(std::ssize(survey.nodes), "node"), model.opset, missing);
}

}  // namespace

void describe_import(Command& command, Context& context) {
  auto options = std::make_shared<ImportCommandOptions>();
  command.add_option("model", options->model.file, "ONNX file").required();
  options->model.add_to(command);
  command.add_option("--backends", options->backends,
                     "backends to show (default: all available ones)");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { import(*options, context); });
}

}  // namespace triptych::app
