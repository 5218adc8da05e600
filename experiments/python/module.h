// Parts of the module `triptych._triptych`. Each adds its names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "core/base/error.h"
#include "experiments/training/device_set.h"
#include "experiments/training/run_folder.h"

namespace triptych::python {

/// An option's value. Throws InvalidArgument, naming the option, for one of another type.
template <class T>
T read_option(const std::string& name, const pybind11::handle& value) {
  try {
    return value.cast<T>();
  } catch (const pybind11::cast_error&) {
    throw InvalidArgument("the option " + name + " is " + std::string(pybind11::repr(value)));
  }
}

void add_errors(pybind11::module_& module);
void add_operators(pybind11::module_& module);
void add_graphs(pybind11::module_& module);
void add_layers(pybind11::module_& module);  // after add_graphs, which registers the types of their
                                             // values
void add_trainer(pybind11::module_& module);
void add_compare(pybind11::module_& module);
void add_machine(pybind11::module_& module);

/// A machine by the names of the command line's options, such as backend, contract, machine,
/// simulate, threads. Throws InvalidArgument for a name that does not exist, with those that do.
training::ExecutionConfig parse_execution(const pybind11::dict& options);

/// Changes `config` by such names. Parameters of `trains` also include ranks, parallel, order and
/// the like.
void set_options(training::ExecutionConfig& config, const pybind11::dict& options, bool trains);

/// Changes the machine of a run that is resumed. Throws InvalidArgument for an option that would
/// make it another run.
void set_options_on_resume(training::SavedRun& saved, const pybind11::dict& options);

}  // namespace triptych::python
