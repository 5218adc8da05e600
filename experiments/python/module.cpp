// The module triptych._triptych, which the package `triptych` dresses up.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>  // without it lists of the whole module would have another converter
#include <pybind11/stl/filesystem.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "core/base/memory_budget.h"
#include "core/base/nearest_name.h"
#include "experiments/python/gate.h"
#include "experiments/training/run_options.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

using training::ExecutionConfig;
using training::RunOption;
using training::Value;

bool is_for(const RunOption& option, bool trains) {
  return !option.python.empty() && (trains || option.group != training::OptionGroup::Ranks);
}

/// Null for a keyword that a machine does not have. A training run has those of ranks, too.
const RunOption* find_keyword(const std::string& name, bool trains) {
  for (const auto& option : training::run_options())
    if (option.python == name && is_for(option, trains)) return &option;
  return nullptr;
}

/// Throws InvalidArgument, which contains the keyword, for an object of another type.
void set_value(const std::string& name, const Value& value, const py::handle& object) {
  const auto set = [&]<class T>(const T& member) {
    if constexpr (std::is_same_v<T, training::TextValue>) {
      member.take(read_option<std::string>(name, object));
    } else {
      *member = read_option<std::remove_pointer_t<T>>(name, object);
    }
  };
  std::visit(set, value);
}

void require_threads(training::Transport before, training::Transport now) {
  if (now != training::Transport::Mpi || now == before) return;
  throw InvalidArgument(
      "ranks of Python are threads of one process; for transport mpi start the program: mpirun -np "
      "4 triptych train ...");
}

[[noreturn]] void refuse_keyword(const std::string& name, bool trains) {
  std::vector<std::string> names;
  for (const auto& option : training::run_options())
    if (is_for(option, trains)) names.emplace_back(option.python);
  std::ranges::sort(names);
  const auto meant = suggestion(name, names);
  throw InvalidArgument(
      fmt::format("there is no option {} of a machine{}", name,
                  meant.empty() ? fmt::format("; there are: {}", fmt::join(names, ", ")) : meant));
}

const char* name_of_policy(training::ResumePolicy policy) {
  using enum training::ResumePolicy;
  return policy == Stored        ? "stored"
         : policy == Replaceable ? "replaceable"
         : policy == Free        ? "free"
                                 : "refused";
}

/// "1..65536", ">0..1". Empty: no limits.
std::string range_of(const training::Limits& limits) {
  if (const auto* whole = std::get_if<training::WholeLimits>(&limits))
    return fmt::format("{}..{}", whole->low, whole->high);
  const auto* number = std::get_if<training::NumberLimits>(&limits);
  if (number == nullptr) return "";
  return fmt::format("{}{}..{}", number->above_low ? ">" : "", number->low, number->high);
}

/// The table of options (training/run_options.h).
py::list run_options() {
  py::list list;
  training::RunConfig config;
  ExecutionConfig machine;
  for (const auto& option : training::run_options()) {
    const auto of_machine = training::value_in(option, machine);
    const auto value = of_machine ? of_machine : training::value_in(option, config);
    py::dict entry;
    entry["name"] = std::string(option.name);
    entry["policy"] = name_of_policy(option.resume);
    entry["same_bits"] = option.same_bits;
    entry["field"] = std::string(option.field);
    entry["range"] = range_of(option.limits);
    entry["default"] = value ? training::text_of(*value) : "";
    entry["of_machine"] = of_machine.has_value();
    entry["of_ranks"] = option.group == training::OptionGroup::Ranks;
    entry["python"] = std::string(option.python);
    list.append(entry);
  }
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

/// pybind11 gives an object that no constructor has initialised, as X.__new__(X) makes, memory with
/// arbitrary content when a function first reads it. This is called in the place of that
/// allocation.
void* refuse_allocation(std::size_t /*bytes*/) {
  throw py::type_error("the object is not initialised: call its class instead of __new__");
}

void refuse_uninitialised_objects(const py::module_& module) {
  for (const auto& [name, member] : module.attr("__dict__").cast<py::dict>()) {
    if (!PyType_Check(member.ptr())) continue;
    auto* type = reinterpret_cast<PyTypeObject*>(member.ptr());
    if (auto* info = py::detail::get_type_info(type)) info->operator_new = refuse_allocation;
  }
}

}  // namespace

void set_options(ExecutionConfig& config, const py::dict& options, bool trains) {
  const auto before = config.parallel.transport;
  for (const auto& [key, object] : options) {
    const auto name = key.cast<std::string>();
    const auto* option = find_keyword(name, trains);
    if (option == nullptr) refuse_keyword(name, trains);
    const auto value = *training::value_in(*option, config);
    set_value(name, value, object);
    training::require_within(name, option->limits, value);
  }
  require_threads(before, config.parallel.transport);
}

void set_options_on_resume(training::SavedRun& saved, const py::dict& options) {
  auto asked = saved.machine;
  set_options(asked, options, true);
  std::vector<std::string> given;
  for (const auto& [key, object] : options)
    given.emplace_back(find_keyword(key.cast<std::string>(), true)->python);
  training::apply_on_resume({.given = given, .config = saved.config, .machine = asked},
                            saved.machine);
}

ExecutionConfig parse_execution(const py::dict& options) {
  ExecutionConfig config;
  set_options(config, options, false);
  return config;
}

void set_max_memory(std::int64_t mebibytes) {
  const auto limits = std::get<training::WholeLimits>(training::run_option("max-memory").limits);
  if (!training::within(limits, mebibytes)) {
    throw InvalidArgument(
        fmt::format("set_max_memory takes MiB {}, got {}", to_string(limits), mebibytes));
  }
  memory_budget().set_limit(static_cast<std::size_t>(mebibytes) << 20);
}

}  // namespace triptych::python

PYBIND11_MODULE(_triptych, module) {
  namespace python = triptych::python;
  module.doc() = "One deep-learning computation on unlike machines.";
  module.attr("__version__") = TRIPTYCH_VERSION;
  python::require_known_numpy();
  python::add_errors(module);
  python::add_operators(module);
  python::add_graphs(module);
  python::add_layers(module);
  python::add_trainer(module);
  python::add_compare(module);
  python::add_machine(module);
  python::refuse_uninitialised_objects(module);
  const auto at_exit = pybind11::module_::import("atexit").attr("register");
  at_exit(pybind11::cpp_function(&python::close_gate,
                                 pybind11::call_guard<pybind11::gil_scoped_release>()));
  module.def(
      "set_max_memory", &python::set_max_memory, pybind11::arg("mebibytes"),
      "Limits the memory of tensors, plans, models and pictures of this process. A request beyond "
      "it raises BadInput. NumPy's arrays do not count.");
  module.def(
      "load_plugin", &triptych::load_plugin, pybind11::arg("path"),
      pybind11::call_guard<pybind11::gil_scoped_release>(),
      "Loads a plugin: a shared library with further backends or kernels, whose code then runs in "
      "this process. Load only files that you trust.");
  module.def("run_options", &python::run_options,
             "The options of a run and the fields of its configuration, a row each.");
  module.def("suggestion", &triptych::suggestion, pybind11::arg("word"), pybind11::arg("names"),
             "\"; did you mean ...\" with the nearest of the names, or an empty text.");
  module.def("devices", &python::devices,
             "The backends of this build: whether each is available, why not, and its devices.");
}
