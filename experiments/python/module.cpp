// The module triptych._triptych, which the package `triptych` dresses up.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "backends/all_backends.h"
#include "core/base/memory_budget.h"
#include "experiments/python/gate.h"
#include "experiments/training/limits.h"
#include "experiments/training/run_options.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

using Set = void (*)(training::ExecutionConfig&, const std::string& name, const py::handle&);

/// A machine's option of Python, and the option of `train` that it is; empty: of Python alone.
struct Setter {
  Set set;
  std::string_view option = {};
};

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

void set_choice(training::ExecutionConfig& config, const std::string& name,
                const py::handle& value) {
  config.choice = value_of<training::Selection>(read_option<std::string>(name, value));
}

void set_graph(training::ExecutionConfig& config, const std::string& name,
               const py::handle& value) {
  config.graph = read_option<bool>(name, value) ? "" : "off";
}

const std::map<std::string, Setter, std::less<>>& setters() {
  using Config = training::ExecutionConfig;
  static const std::map<std::string, Setter, std::less<>> list = {
      {"backend", {set_option<&Config::backend>, "--backend"}},
      {"fallback", {set_option<&Config::fallback>, "--fallback"}},
      {"device", {set_option<&Config::device>}},
      {"threads", {set_option<&Config::threads>, "--threads"}},
      {"machine", {set_option<&Config::machine>, "--machine"}},
      {"tiling", {set_option<&Config::tiling>}},
      {"kernel", {set_option<&Config::kernel>, "--kernel"}},
      {"choice", {set_choice, "--choice"}},
      {"emulation", {set_option<&Config::emulation>}},
      {"winograd", {set_option<&Config::winograd>, "--no-winograd"}},
      {"graph", {set_graph, "--no-graph"}},
      {"contract", {set_contract, "--contract"}},
      {"simulate", {set_simulation, "--simulate"}}};
  return list;
}

template <auto Member>
void set_parallel(training::ExecutionConfig& config, const std::string& name,
                  const py::handle& value) {
  using T = std::remove_reference_t<decltype(config.parallel.*Member)>;
  if constexpr (Named<T>) {
    config.parallel.*Member = value_of<T>(read_option<std::string>(name, value));
  } else {
    config.parallel.*Member = read_option<T>(name, value);
  }
}

void set_strategy(training::ExecutionConfig& config, const std::string& name,
                  const py::handle& value) {
  auto mesh = std::move(config.parallel.strategy.mesh);  // of an option of its own
  config.parallel.strategy = parallel::strategy_without_mesh(read_option<std::string>(name, value));
  config.parallel.strategy.mesh = std::move(mesh);
}

void set_mesh(training::ExecutionConfig& config, const std::string& name, const py::handle& value) {
  config.parallel.strategy.mesh = parallel::mesh_from_string(read_option<std::string>(name, value));
}

void set_transport(training::ExecutionConfig& config, const std::string& name,
                   const py::handle& value) {
  set_parallel<&training::ParallelConfig::transport>(config, name, value);
  if (config.parallel.transport != training::Transport::Mpi) return;
  throw InvalidArgument(
      "ranks of Python are threads of one process; for transport mpi start the program: mpirun -np "
      "4 triptych train ...");
}

/// Options of a training run besides.
const std::map<std::string, Setter, std::less<>>& parallel_setters() {
  using Config = training::ParallelConfig;
  static const std::map<std::string, Setter, std::less<>> list = {
      {"ranks", {set_parallel<&Config::ranks>, "--ranks"}},
      {"parallel", {set_strategy, "--parallel"}},
      {"mesh", {set_mesh, "--mesh"}},
      {"order", {set_parallel<&Config::order>, "--order"}},
      {"shards", {set_parallel<&Config::shards>, "--shards"}},
      {"overlap", {set_parallel<&Config::overlap>, "--overlap"}},
      {"timeout", {set_parallel<&Config::timeout_s>, "--comm-timeout"}},
      {"transport", {set_transport, "--transport"}},
      {"interconnect", {set_parallel<&Config::interconnect>, "--interconnect"}},
      {"link_latency", {set_parallel<&Config::link_latency_s>, "--link-latency"}},
      {"link_bandwidth", {set_parallel<&Config::link_bytes_per_s>, "--link-bandwidth"}}};
  return list;
}

/// Nothing when `name` is in neither list; a training run alone has the second.
const Setter* find_setter(const std::string& name, bool trains) {
  const auto found = setters().find(name);
  if (found != setters().end()) return &found->second;
  const auto other = parallel_setters().find(name);
  return trains && other != parallel_setters().end() ? &other->second : nullptr;
}

/// The table of `train`'s options (training/run_options.h), with their names in Python.
py::list train_options() {
  using enum training::ResumePolicy;
  const auto name_of_policy = [](training::ResumePolicy policy) {
    return policy == Stored        ? "stored"
           : policy == Replaceable ? "replaceable"
           : policy == Free        ? "free"
                                   : "refused";
  };
  py::list list;
  for (const auto& option : training::run_options()) {
    py::dict entry;
    entry["name"] = std::string(option.name);
    entry["policy"] = name_of_policy(option.policy);
    entry["field"] = std::string(option.field);
    entry["of_machine"] = option.take_machine != nullptr || option.text != nullptr;
    entry["python"] = py::none();
    for (const auto* setters_of : {&setters(), &parallel_setters()})
      for (const auto& [name, setter] : *setters_of)
        if (setter.option == option.name) entry["python"] = name;
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

void set_options(training::ExecutionConfig& config, const py::dict& options, bool trains) {
  for (const auto& [key, value] : options) {
    const auto name = key.cast<std::string>();
    if (const auto* setter = find_setter(name, trains)) {
      setter->set(config, name, value);
      continue;
    }
    std::vector<std::string_view> names;
    for (const auto& [known, setter] : setters()) names.push_back(known);
    if (trains)
      for (const auto& [known, setter] : parallel_setters()) names.push_back(known);
    throw InvalidArgument(fmt::format("there is no option {} of a machine; there are: {}", name,
                                      fmt::join(names, ", ")));
  }
  using namespace training;
  require_within("threads", limits::kThreads, config.threads);
  require_within("ranks", limits::kRanks, config.parallel.ranks);
  require_within("shards", limits::kShards, config.parallel.shards);
  require_within("timeout", limits::kTimeout, config.parallel.timeout_s);
  require_within("link_latency", limits::kLinkLatency, config.parallel.link_latency_s);
  require_within("link_bandwidth", limits::kLinkBandwidth, config.parallel.link_bytes_per_s);
}

void set_options_on_resume(training::SavedRun& saved, const py::dict& options) {
  auto asked = saved.machine;
  set_options(asked, options, true);
  std::vector<std::string> given;
  for (const auto& [key, value] : options) {
    const auto name = key.cast<std::string>();
    const auto option = find_setter(name, true)->option;
    if (!option.empty()) given.emplace_back(option);
  }
  if (asked.tiling != saved.machine.tiling)
    throw InvalidArgument("the option tiling cannot change in a resumed run; leave it out");
  saved.machine.device = asked.device;
  saved.machine.emulation = asked.emulation;
  training::apply_on_resume({.given = given, .config = saved.config, .machine = asked},
                            saved.machine);
}

training::ExecutionConfig parse_execution(const py::dict& options) {
  training::ExecutionConfig config;
  set_options(config, options, false);
  return config;
}

void set_max_memory(std::int64_t mebibytes) {
  if (mebibytes < 1 || !training::within(training::limits::kMemoryMib, mebibytes)) {
    throw InvalidArgument(fmt::format("set_max_memory takes MiB from 1 to {}, got {}",
                                      training::limits::kMemoryMib.high, mebibytes));
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
  module.def("train_options", &python::train_options,
             "The options of `train`, with their policies when a run is resumed.");
  module.def("devices", &python::devices,
             "The backends of this build: whether each is available, why not, and its devices.");
}
