// Graph, Value and Plan, ONNX files, and the training step of a graph.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "core/nn/training_graph.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
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

/// Operands of one node: values of `graph`, and arrays, which become constants.
std::vector<GraphValue> emit(const GraphPtr& graph, const std::string& name,
                             const py::tuple& arguments, const py::dict& attributes) {
  const auto op = make_operator(name, attributes);
  std::vector<ValueId> inputs;
  for (const auto& argument : arguments) {
    if (!py::isinstance<GraphValue>(argument)) {
      const auto which = name + ": input " + std::to_string(inputs.size());
      inputs.push_back(graph->constant(view_array(argument, which).copy()));
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
  const std::map<std::string, float*> numbers = {{"momentum", &config.momentum},
                                                 {"beta1", &config.beta1},
                                                 {"beta2", &config.beta2},
                                                 {"epsilon", &config.epsilon},
                                                 {"weight_decay", &config.weight_decay}};
  for (const auto& [key, value] : options) {
    const auto option = key.cast<std::string>();
    const auto number = numbers.find(option);
    if (option == "nesterov") {
      config.nesterov = value.cast<bool>();
    } else if (number != numbers.end()) {
      *number->second = value.cast<float>();
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

py::list named_values(const Graph& graph, ValueKind kind) {
  py::list list;
  for (const auto id : graph.values_of(kind)) {
    const auto& value = graph.value(id);
    list.append(py::make_tuple(value.name, shape_tuple(value.spec), to_string(value.spec.dtype)));
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

/// Stops between two steps when Python has a signal to handle, such as Ctrl-C.
void run_plan(PythonPlan& plan, const py::dict& inputs, int steps) {
  if (steps < 1) throw InvalidArgument("a plan runs at least 1 step, got " + std::to_string(steps));
  RunInputs arrays(inputs);
  for (int i = 0; i < steps; ++i) {
    if (i > 0 && PyErr_CheckSignals() != 0) throw py::error_already_set();
    const OutsidePython others_may_run;
    plan.run(arrays.list);
    arrays.list.clear();  // they are set
  }
}

template <class Function>
auto without_gil(Function&& function) {
  const OutsidePython others_may_run;
  return function();
}

py::dict read_outputs(PythonPlan& plan) {
  py::dict outputs;
  for (const auto& name : output_names(plan.plan().graph)) {
    auto tensor = without_gil([&] { return plan.output(name); });
    outputs[name.c_str()] = to_array(std::move(tensor));
  }
  return outputs;
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

std::unique_ptr<PythonPlan> make_python_plan(const Graph& graph, const py::dict& options,
                                             bool keep_values) {
  const auto config = parse_execution(options);
  auto copy = graph.clone();  // while nobody can change it
  const OutsidePython others_may_run;
  return std::make_unique<PythonPlan>(std::move(copy), config, keep_values);
}

void add_plan(py::module_& module) {
  py::class_<PythonPlan>(module, "Plan")
      .def("run", &run_plan, py::arg("inputs"), py::arg("steps"))
      .def("outputs", &read_outputs)
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
      .def("device_names", [](const PythonPlan& plan) {
        std::vector<std::string> names;
        for (const auto* device : plan.plan().devices) names.push_back(device->info().name);
        return names;
      });
}

}  // namespace

void add_graphs(py::module_& module) {
  py::class_<GraphValue>(module, "Value")
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
      .def("train", &train)
      .def("plan", &make_python_plan)
      .def("inputs", [](const Graph& graph) { return named_values(graph, ValueKind::Input); })
      .def("states", [](const Graph& graph) { return named_values(graph, ValueKind::State); })
      .def("outputs", &output_names)
      .def("text", [](const Graph& graph) { return to_text(graph); })
      .def("dot", [](const Graph& graph) { return to_dot(graph); })
      .def("node_count", [](const Graph& graph) { return graph.nodes().size(); });
  add_plan(module);
  module.def("load", &load, py::arg("path"), py::arg("bind"));
}

}  // namespace triptych::python
