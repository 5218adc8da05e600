// Graph, Value and Plan, ONNX files, and the training step of a graph.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/runtime/counter_fields.h"
#include "experiments/python/arrays.h"
#include "experiments/python/gate.h"
#include "experiments/python/graphs.h"
#include "experiments/python/module.h"
#include "experiments/python/operators.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

using GraphPtr = std::shared_ptr<Graph>;

py::tuple shape_tuple(const TensorSpec& spec) { return py::cast(spec.shape.dims()); }

TensorSpec spec_of(const Dims& shape, const py::handle& dtype) {
  return {parse_dtype(dtype), Shape(shape)};
}

GraphValue add_array(const GraphPtr& graph, const std::string& name, const py::handle& array,
                     bool parameter) {
  auto tensor = view_array(array, name).copy();
  if (parameter) return {graph, graph->add_state(name, std::move(tensor), StateRole::Parameter)};
  return {graph, graph->add_state(name, std::move(tensor))};
}

/// Operands of one node: values of `graph`, and arrays and numbers, which become constants.
std::vector<GraphValue> emit(const GraphPtr& graph, const std::string& name,
                             const py::tuple& arguments, const py::dict& attributes) {
  const auto op = make_operator(name, attributes);
  std::vector<ValueId> inputs;
  for (const auto& argument : arguments) {
    if (!py::isinstance<GraphValue>(argument)) {
      const auto which = name + ": input " + std::to_string(inputs.size());
      auto literal = literal_operand(*op, arguments, inputs.size());
      inputs.push_back(
          graph->constant(literal ? std::move(*literal) : view_array(argument, which).copy()));
      continue;
    }
    const auto& value = argument.cast<const GraphValue&>();
    if (value.graph != graph) throw_invalid(name, "its inputs are values of different graphs");
    inputs.push_back(value.id);
  }
  std::vector<GraphValue> outputs;
  for (const auto id : graph->add_node(op, inputs)) outputs.push_back({graph, id});
  return outputs;
}

OptimizerConfig parse_optimizer(const std::string& name, const py::dict& options) {
  OptimizerConfig config;
  config.kind = value_of<OptimizerKind>(name);
  // PyTorch's defaults. The command line has others.
  if (config.kind == OptimizerKind::Sgd) config.momentum = 0;
  if (config.kind == OptimizerKind::AdamW) config.weight_decay = 0.01F;
  const std::map<std::string, float*> numbers = {{"momentum", &config.momentum},
                                                 {"beta1", &config.beta1},
                                                 {"beta2", &config.beta2},
                                                 {"epsilon", &config.epsilon},
                                                 {"weight_decay", &config.weight_decay}};
  for (const auto& [key, value] : options) {
    const auto option = key.cast<std::string>();
    const auto number = numbers.find(option);
    if (option == "nesterov") {
      config.nesterov = read_option<bool>(option, value);
    } else if (number != numbers.end()) {
      *number->second = read_option<float>(option, value);
    } else {
      throw InvalidArgument("an optimizer has no option " + option +
                            "; there are: momentum, nesterov, beta1, beta2, epsilon, weight_decay");
    }
  }
  return config;
}

GraphPtr share(Graph graph) { return std::make_shared<Graph>(std::move(graph)); }

GraphPtr train(const Graph& graph, const GraphValue& loss, const std::string& optimizer,
               const py::dict& options) {
  auto forward = graph.clone();
  forward.mark_output("loss", loss.id);
  return share(make_training_graph(std::move(forward), parse_optimizer(optimizer, options)).graph);
}

GraphPtr load(const std::string& path, const std::map<std::string, std::int64_t>& bind) {
  return share(onnx::import_model(onnx::load_model(path), {.bind = bind}).graph);
}

/// A network in training: `states` gives each of its numbers that a run keeps the role
/// "parameter", "statistic" or "other". Those that the file does not have are left out.
GraphPtr load_training(const std::string& path, const std::map<std::string, std::string>& states,
                       std::int64_t seed) {
  static const std::map<std::string, StateRole> roles = {{"parameter", StateRole::Parameter},
                                                         {"statistic", StateRole::Statistic},
                                                         {"other", StateRole::Other}};
  const auto model = onnx::load_model(path);
  onnx::ImportOptions options = {.dropout_seed = seed};
  for (const auto& [name, role] : states) {
    if (model.initializers.contains(name)) options.states[name] = roles.at(role);
  }
  return share(onnx::import_model(model, options).graph);
}

GraphValue output_value(const GraphPtr& graph, const std::string& name) {
  for (const auto& output : graph->outputs())
    if (output.name == name) return {graph, output.value};
  throw InvalidArgument("the graph has no output \"" + name + "\"");
}

py::list named_values(const Graph& graph, ValueKind kind) {
  py::list list;
  for (const auto id : graph.values_of(kind)) {
    const auto& value = graph.value(id);
    list.append(py::make_tuple(value.name, shape_tuple(value.spec), to_string(value.spec.dtype)));
  }
  return list;
}

/// (name, operator, names of inputs, names of outputs, spec of the first output) of each node.
py::list list_nodes(const Graph& graph) {
  const auto names = [&](const std::vector<ValueId>& values) {
    py::list list;
    for (const auto id : values) list.append(id.valid() ? graph.value(id).name : std::string());
    return list;
  };
  py::list list;
  for (const auto& node : graph.nodes()) {
    const auto spec = node.outputs.empty() ? "" : to_string(graph.spec(node.outputs.front()));
    list.append(
        py::make_tuple(node.name, node.op->name(), names(node.inputs), names(node.outputs), spec));
  }
  return list;
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& output : graph.outputs()) names.push_back(output.name);
  return names;
}

/// Keeps the arrays of a run for as long as it reads them.
struct RunInputs {
  explicit RunInputs(const py::dict& inputs) {
    for (const auto& [key, array] : inputs) {
      auto name = key.cast<std::string>();
      views.push_back(view_array(array, "the input \"" + name + "\""));
      list.emplace_back(std::move(name), NodeInput{views.back().spec, views.back().bytes()});
    }
  }
  std::vector<ArrayView> views;
  std::vector<std::pair<std::string, NodeInput>> list;
};

/// Runs, and returns the outputs by name. Stops between two steps when Python has a signal to
/// handle, such as Ctrl-C.
py::dict run_plan(PythonPlan& plan, const py::dict& inputs, int steps) {
  if (steps < 1) throw InvalidArgument("a plan runs at least 1 step, got " + std::to_string(steps));
  RunInputs arrays(inputs);
  std::vector<std::pair<std::string, Tensor>> outputs;
  for (int i = 0; i < steps; ++i) {
    if (i > 0 && PyErr_CheckSignals() != 0) throw py::error_already_set();
    const OutsidePython others_may_run;
    outputs = plan.run(arrays.list);
    arrays.list.clear();  // they are set
  }
  py::dict named;
  for (auto& [name, tensor] : outputs) named[name.c_str()] = to_array(std::move(tensor));
  return named;
}

template <class Function>
auto without_gil(Function&& function) {
  const OutsidePython others_may_run;
  return function();
}

/// Seconds of a call in C++: inputs set, a run, all outputs copied out.
double seconds_per_call(PythonPlan& plan, const py::dict& inputs, int calls) {
  if (calls < 1) throw InvalidArgument("at least 1 call is timed, got " + std::to_string(calls));
  const RunInputs arrays(inputs);
  const OutsidePython others_may_run;
  return plan.seconds_per_call(arrays.list, calls);
}

std::string trace_plan(PythonPlan& plan, const py::dict& inputs) {
  const RunInputs arrays(inputs);
  const OutsidePython others_may_run;
  return plan.trace(arrays.list);
}

/// (node, operator, device, kernel, reason) of each step.
py::list explain(const PythonPlan& python_plan) {
  const auto& plan = python_plan.plan();
  py::list list;
  for (const auto& step : plan.steps) {
    const auto& node = plan.graph.node(step.node);
    list.append(py::make_tuple(node.name, node.op->name(), plan.devices[step.device]->info().name,
                               step.entry == nullptr ? "" : step.entry->name,
                               reason_of(plan, step)));
  }
  return list;
}

/// A row for each place of each kernel's source that touches memory.
py::list kernel_lines(PythonPlan& plan) {
  using namespace py::literals;
  py::list list;
  for (const auto& [kernel, counters] : without_gil([&] { return plan.kernel_counters(); })) {
    for (const auto& [site, at] : counters.sites) {
      py::dict row("kernel"_a = kernel, "file"_a = site.file, "line"_a = site.line,
                   "column"_a = site.column, "space"_a = to_string(site.space),
                   "access"_a = to_string(site.access));
      visit_accesses(at, std::nullopt, [&](const char* name, auto count) { row[name] = count; });
      list.append(row);
    }
  }
  return list;
}

/// A row for each kernel.
py::list kernels(PythonPlan& plan) {
  using namespace py::literals;
  py::list list;
  for (const auto& [kernel, counters] : without_gil([&] { return plan.kernel_counters(); })) {
    py::dict row("kernel"_a = kernel);
    visit_launches(counters, [&](const char* name, auto count) { row[name] = count; });
    row["bulk_bytes"] = counters.bulk_bytes;
    list.append(row);
  }
  return list;
}

std::unique_ptr<PythonPlan> make_python_plan(const Graph& graph, const py::dict& options,
                                             bool keep_values, bool inference) {
  const auto config = parse_execution(options);
  auto copy = graph.clone();  // while nobody can change it
  const OutsidePython others_may_run;
  if (inference) copy = optimize(std::move(copy), {.inference = true});
  return std::make_unique<PythonPlan>(std::move(copy), config, keep_values);
}

void add_plan(py::module_& module) {
  py::class_<PythonPlan>(module, "Plan")
      .def("run", &run_plan, py::arg("inputs"), py::arg("steps"))
      .def("output",
           [](PythonPlan& plan, const std::string& name) {
             return to_array(without_gil([&] { return plan.output(name); }));
           })
      .def("explain", &explain)
      .def("trace", &trace_plan, py::arg("inputs"))
      .def("states", &PythonPlan::states)
      .def("weights_sha256", &PythonPlan::weights_sha256, py::call_guard<OutsidePython>())
      .def("state",
           [](PythonPlan& plan, const std::string& name) {
             return to_array(without_gil([&] { return plan.state(name); }));
           })
      .def("set_state",
           [](PythonPlan& plan, const std::string& name, const py::handle& array) {
             const auto tensor = view_array(array, "the state \"" + name + "\"").copy();
             without_gil([&] { plan.set_state(name, tensor); });
           })
      .def("counters", &PythonPlan::counters, py::call_guard<OutsidePython>())
      .def("kernel_lines", &kernel_lines)
      .def("kernels", &kernels)
      .def("seconds_per_call", &seconds_per_call, py::arg("inputs"), py::arg("calls"))
      .def("device_names", [](const PythonPlan& plan) {
        std::vector<std::string> names;
        for (const auto* device : plan.plan().devices) names.push_back(device->info().name);
        return names;
      });
}

}  // namespace

void add_graphs(py::module_& module) {
  py::class_<GraphValue>(module, "Value",
                         "A value of a graph: operands of ops, with + - * / @ and unary minus.")
      .def_property_readonly("shape", [](const GraphValue& v) { return shape_tuple(v.spec()); })
      .def_property_readonly("dtype", [](const GraphValue& v) { return to_string(v.spec().dtype); })
      .def_property_readonly("name", [](const GraphValue& v) { return v.graph->value(v.id).name; })
      .def_property_readonly("graph", [](const GraphValue& v) { return v.graph; })
      .def("__repr__", [](const GraphValue& v) {
        return "<Value %" + v.graph->value(v.id).name + ": " + to_string(v.spec()) + ">";
      });
  py::class_<Graph, GraphPtr>(module, "Graph")
      .def(py::init<>())
      .def("input",
           [](const GraphPtr& graph, const std::string& name, const Dims& shape,
              const py::handle& dtype) {
             return GraphValue{graph, graph->add_input(name, spec_of(shape, dtype))};
           })
      .def("state", &add_array)
      .def("emit", &emit)
      .def("mark_output",
           [](const GraphPtr& graph, const std::string& name, const GraphValue& value) {
             if (value.graph != graph) throw InvalidArgument("the value is of another graph");
             graph->mark_output(name, value.id);
           })
      .def("find",
           [](const GraphPtr& g, const std::string& n) {
             return GraphValue{g, g->find(n)};
           })
      .def("result", &output_value)
      .def("train", &train)
      .def("plan", &make_python_plan, py::arg("machine"), py::arg("keep_values"),
           py::arg("inference"))
      .def("inputs", [](const Graph& graph) { return named_values(graph, ValueKind::Input); })
      .def("states", [](const Graph& graph) { return named_values(graph, ValueKind::State); })
      .def("outputs", &output_names)
      .def("nodes", &list_nodes)
      .def("text", [](const Graph& graph) { return to_text(graph); })
      .def("dot", [](const Graph& graph) { return to_dot(graph); })
      .def("node_count", [](const Graph& graph) { return graph.nodes().size(); });
  add_plan(module);
  module.def("load", &load, py::arg("path"), py::arg("bind"));
  module.def("load_training", &load_training, py::arg("path"), py::arg("states"), py::arg("seed"));
}

}  // namespace triptych::python
