// Single operators: the table of them, and running one at once.
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <type_traits>
#include <utility>

#include "core/graph/passes/quantize.h"
#include "core/ops/all_ops.h"
#include "core/ops/binary.h"
#include "experiments/python/arrays.h"
#include "experiments/python/dlpack.h"
#include "experiments/python/gate.h"
#include "experiments/python/graphs.h"
#include "experiments/python/module.h"
#include "experiments/python/node_cache.h"
#include "experiments/python/operators.h"
#include "experiments/python/python_names.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

/// Capacity of prepared plans: several times the distinct layers of a U-Net.
constexpr std::size_t kKeptPlans = 256;

NodeCache& cache() {
  static auto* kept = new NodeCache(kKeptPlans);  // threads may run when the interpreter ends
  return *kept;
}

/// Python's value as the attribute has it. `like` is its default.
AttributeValue read_attribute(const std::string& op, const std::string& name,
                              const py::handle& value, const AttributeValue& like) {
  return std::visit(
      [&](const auto& held) -> AttributeValue {
        using T = std::decay_t<decltype(held)>;
        try {
          if constexpr (std::is_same_v<T, std::int64_t>) {
            if (PyFloat_Check(value.ptr()) != 0) throw py::cast_error();
          }
          return value.cast<T>();
        } catch (const py::cast_error&) {
          throw_invalid(op, "the attribute " + name + " cannot be " + std::string(py::repr(value)) +
                                "; its default is " + to_string(Attribute{name, held}));
        }
      },
      like);
}

py::object attribute_object(const AttributeValue& value) {
  return std::visit([](const auto& held) { return py::cast(held); }, value);
}

py::list operators() {
  py::list list;
  for (const auto& op : all_ops()) {
    py::dict attributes;
    for (const auto& attribute : op->attributes()) {
      attributes[attribute.name.c_str()] = attribute_object(attribute.value);
    }
    list.append(py::make_tuple(op->name(), op->summary(), attributes, op->composite(),
                               op->differentiable()));
  }
  return list;
}

py::tuple outputs_tuple(NodeRun& run) {
  py::tuple outputs(run.outputs.size());
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    outputs[i] = to_array(std::move(run.outputs[i]));
  }
  return outputs;
}

py::tuple run_operator(const std::string& name, const py::tuple& arguments,
                       const py::dict& attributes, const py::dict& options) {
  const auto op = make_operator(name, attributes);
  const auto config = parse_execution(options);
  std::vector<ArrayView> views;
  std::vector<NodeInput> inputs;
  for (const auto& argument : arguments) {
    const auto which = name + ": input " + std::to_string(views.size());
    auto literal = literal_operand(*op, arguments, views.size());
    views.push_back(literal ? view_array(to_array(std::move(*literal)), which)
                            : view_array(argument, which));
    inputs.push_back({views.back().spec, views.back().bytes()});
  }
  NodeRun run;
  {
    const OutsidePython others_may_run;
    run = cache().run(op, inputs, config);
  }
  return py::make_tuple(outputs_tuple(run), run.device, run.kernel, run.time.seconds,
                        to_string(run.time.kind), run.counters);
}

bool is_number(const py::handle& object) {
  return PyFloat_CheckExact(object.ptr()) != 0 || PyLong_CheckExact(object.ptr()) != 0;
}

/// A scalar of T.
template <class T>
Tensor number_as(const py::handle& number) {
  if constexpr (std::is_integral_v<T>) {
    const auto value = number.cast<std::int64_t>();  // no float, and none beyond int64
    if (!std::in_range<T>(value)) throw py::cast_error();
    return scalar_tensor(static_cast<T>(value));
  } else {
    const auto value = number.cast<double>();
    return from_doubles({dtype_of<T>, {}}, {&value, 1});
  }
}

}  // namespace

std::optional<Tensor> literal_operand(const Op& op, const py::tuple& arguments, std::size_t i) {
  if (op_cast<Binary>(op) == nullptr || arguments.size() != 2) return std::nullopt;
  const py::object number = arguments[i], other = arguments[1 - i];
  if (!is_number(number) || is_number(other)) return std::nullopt;
  const auto dtype = py::isinstance<GraphValue>(other)
                         ? other.cast<const GraphValue&>().spec().dtype
                         : view_array(other, std::string(op.name())).spec.dtype;
  try {
    return visit_dtype(dtype, [&](auto tag) -> std::optional<Tensor> {
      using T = decltype(tag);
      if constexpr (std::is_same_v<T, bool>) {
        return std::nullopt;
      } else {
        return number_as<T>(number);
      }
    });
  } catch (const py::cast_error&) {
    throw_invalid(op.name(), "the number " + std::string(py::repr(number)) + " is no " +
                                 std::string(to_string(dtype)) +
                                 ", which the other operand is; Cast one of them");
  }
}

OpPtr make_operator(const std::string& name, const py::dict& attributes) {
  const auto& prototype = find_op(name);
  std::vector<Attribute> list;
  const auto defaults = prototype.attributes();
  for (const auto& [key, value] : attributes) {
    const auto attribute = key.cast<std::string>();
    const auto like = std::ranges::find(defaults, attribute, &Attribute::name);
    if (like == defaults.end()) {
      std::string names;
      for (const auto& known : defaults) names += (names.empty() ? "" : ", ") + known.name;
      throw_invalid(name, "there is no attribute " + attribute +
                              "; its attributes: " + (names.empty() ? "none" : names));
    }
    list.push_back({attribute, read_attribute(name, attribute, value, like->value)});
  }
  return prototype.with_attributes(list);
}

void add_operators(py::module_& module) {
  module.def("bfloat16_to_dlpack", &bfloat16_to_dlpack);
  module.def("python_word", &python_word);
  module.def("python_name", &python_name);
  module.def("dtype_name", [](const py::handle& dtype) { return to_string(parse_dtype(dtype)); });
  module.def(
      "requantization",
      [](double factor) {
        const auto [multiplier, shift] = requantization_of(factor);
        return std::pair(multiplier, shift);
      },
      "The factor as multiplier / 2^shift, for QuantizedConv.");
  module.def("operators", &operators,
             "(name, formula, attributes with defaults, composite, differentiable) of each.");
  module.def("run_operator", &run_operator, py::arg("name"), py::arg("inputs"),
             py::arg("attributes"), py::arg("options"),
             "(outputs, device, kernel, seconds, kind of time, counters) of one operator.");
  module.def(
      "kept_plans", [] { return std::pair(cache().size(), cache().capacity()); },
      "How many prepared plans of single operators are kept, and how many may be.");
  module.def(
      "drop_plans", [] { cache().clear(); }, py::call_guard<OutsidePython>(),
      "Lets go of the prepared plans of single operators and of the devices that they keep open.");
}

}  // namespace triptych::python
