// A comparison of machines: its document and its page.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/strict_json.h"
#include "core/io/temporary_folder.h"
#include "experiments/compare/compare_page.h"
#include "experiments/compare/comparison.h"
#include "experiments/measure/document.h"
#include "experiments/page/page.h"
#include "experiments/python/given_data.h"
#include "experiments/python/listener.h"
#include "experiments/python/module.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

compare::Listener listener_of(Listener& told) {
  compare::Listener listener;
  listener.observer = [&](const compare::MachineRequest& request) {
    told.call("on_machine", request.label);
    return told.observer();
  };
  listener.on_absence = [&](const compare::Column& column) {
    told.call("on_note", to_string(column.request, column.absence));
  };
  listener.on_difference = [&](const compare::MachineRequest& first,
                               const compare::MachineRequest& second) {
    told.call("on_note", first.label + " and " + second.label +
                             " differ; training both again to find the first node");
  };
  return listener;
}

/// The document of the command `compare`. Empty when it was stopped.
std::string run(compare::Comparison& all, Listener& told, const std::atomic<bool>& interrupted) {
  const TemporaryFolder runs("compare");
  const auto listener = listener_of(told);
  all.experiment.folder = runs.path();
  compare::run_all(all, listener, interrupted);
  if (interrupted) return {};
  for (const auto& column : all.columns) {
    if (column.result) continue;
    const bool none = std::ranges::none_of(
        all.columns, [](const compare::Column& one) { return one.result.has_value(); });
    if (none) throw DeviceError(to_string(column.request, column.absence));
  }
  compare::look_for_difference(all, runs.path() / "again", listener, interrupted);
  if (interrupted) return {};
  return measure::document("compare", compare::to_json(all)).dump(1);
}

py::str compare_machines(const std::string& json, const py::dict& options,
                         const std::string& backends, const py::object& data,
                         const py::object& validation, const py::object& told,
                         const std::string& command) {
  compare::Comparison all;
  training::ExecutionConfig common;
  set_options(common, options, false);
  all.experiment.run = training::run_config_from_json(json);
  GivenData given = data.is_none() ? GivenData() : GivenData(data, validation, 0);
  all.experiment.load = given.load(GivenData::Use::Again);
  all.contract = common.contract;
  all.command = command;
  std::atomic<bool> interrupted = false;
  Listener listener(told, interrupted);
  std::string document;
  {
    const OutsidePython others_may_run;
    all.columns = compare::columns_of(compare::parse_machines(backends, common));
    document = run(all, listener, interrupted);
  }
  listener.rethrow();
  return document;
}

/// The document of a comparison. Throws an Error for other text and other versions of it.
page::Json read_document(const std::string& text) {
  auto document = parse_strict<page::Json>(text);
  require_schema(document, measure::kJsonSchema, "compare again with this version");
  if (document.value("command", page::Json()) != "compare")
    throw InvalidArgument("the document is not one of triptych compare");
  return document;
}

}  // namespace

void add_compare(py::module_& module) {
  module.def("compare", &compare_machines);
  module.def("compare_page", [](const std::string& document) {
    return compare::compare_page(read_document(document));
  });
  module.def("check_comparison",
             [](const std::string& document) { static_cast<void>(read_document(document)); });
}

}  // namespace triptych::python
