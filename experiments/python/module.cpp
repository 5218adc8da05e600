// The module triptych._triptych, which the package `triptych` dresses up.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "backends/all_backends.h"
#include "experiments/python/gate.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

template <class T>
T read_option(const std::string& name, const py::handle& value) {
  try {
    return value.cast<T>();
  } catch (const py::cast_error&) {
    throw InvalidArgument(fmt::format("the option {} is {}", name, std::string(py::repr(value))));
  }
}

using Setter = void (*)(training::ExecutionConfig&, const std::string& name, const py::handle&);

template <auto Member>
void set_option(training::ExecutionConfig& config, const std::string& name,
                const py::handle& value) {
  using T = std::remove_reference_t<decltype(config.*Member)>;
  config.*Member = read_option<T>(name, value);
}

void set_contract(training::ExecutionConfig& config, const std::string& name,
                  const py::handle& value) {
  config.contract = contract_from_string(read_option<std::string>(name, value));
}

void set_simulation(training::ExecutionConfig& config, const std::string& name,
                    const py::handle& value) {
  config.simulate = value_of<mmu::Simulation>(read_option<std::string>(name, value));
}

const std::map<std::string, Setter, std::less<>>& setters() {
  using Config = training::ExecutionConfig;
  static const std::map<std::string, Setter, std::less<>> list = {
      {"backend", set_option<&Config::backend>},
      {"fallback", set_option<&Config::fallback>},
      {"device", set_option<&Config::device>},
      {"threads", set_option<&Config::threads>},
      {"machine", set_option<&Config::machine>},
      {"kernel", set_option<&Config::kernel>},
      {"emulation", set_option<&Config::emulation>},
      {"winograd", set_option<&Config::winograd>},
      {"contract", set_contract},
      {"simulate", set_simulation}};
  return list;
}

py::list devices() {
  py::list list;
  for (const auto* backend : all_backends()) {
    py::dict entry;
    const auto found = backend->availability();
    entry["backend"] = backend->name();
    entry["available"] = found.available;
    entry["reason"] = found.reason;
    py::list names;
    for (const auto& info : backend->devices()) names.append(info.name);
    entry["devices"] = names;
    list.append(entry);
  }
  return list;
}

/// Before pybind11 2.12 its arrays have the layout of NumPy 1.
void require_known_numpy() {
  constexpr int first_for_numpy2 = 0x020C0000;
  const auto version = py::module_::import("numpy").attr("__version__").cast<std::string>();
  if (PYBIND11_VERSION_HEX >= first_for_numpy2 || version.starts_with("1.")) return;
  throw py::import_error(fmt::format(
      "this build of triptych knows NumPy 1 alone, and found NumPy {}: it was built with "
      "pybind11 {}.{}; install numpy<2, or build it with pybind11 2.12 or newer",
      version, PYBIND11_VERSION_MAJOR, PYBIND11_VERSION_MINOR));
}

}  // namespace

training::ExecutionConfig parse_execution(const py::dict& options) {
  training::ExecutionConfig config;
  for (const auto& [key, value] : options) {
    const auto name = key.cast<std::string>();
    const auto found = setters().find(name);
    if (found == setters().end()) {
      std::vector<std::string_view> names;
      for (const auto& [known, setter] : setters()) names.push_back(known);
      throw InvalidArgument(fmt::format("there is no option {} of a machine; there are: {}", name,
                                        fmt::join(names, ", ")));
    }
    found->second(config, name, value);
  }
  return config;
}

}  // namespace triptych::python

PYBIND11_MODULE(_triptych, module) {
  namespace python = triptych::python;
  module.doc() = "One deep-learning computation on unlike machines.";
  python::require_known_numpy();
  python::add_errors(module);
  python::add_operators(module);
  python::add_graphs(module);
  python::add_layers(module);
  const auto at_exit = pybind11::module_::import("atexit").attr("register");
  at_exit(pybind11::cpp_function(&python::close_gate,
                                 pybind11::call_guard<pybind11::gil_scoped_release>()));
  module.def("devices", &python::devices,
             "The backends of this build: whether each is available, why not, and its devices.");
}
