// The exceptions of Triptych as exceptions of Python, with the same message.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/base/file_text.h"
#include "experiments/python/module.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

/// Exception classes, which live as long as the interpreter.
struct Classes {
  PyObject *error = nullptr, *bad_input = nullptr, *device_unavailable = nullptr,
           *unsupported = nullptr, *numeric_mismatch = nullptr, *rank_failed = nullptr;
};
Classes classes;

PyObject* add(py::module_& module, const char* name, const char* doc, const py::tuple& bases) {
  const auto full = std::string("triptych.") + name;
  auto* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  module.add_object(name, py::reinterpret_borrow<py::object>(made));
  return made;
}

/// Python prints a message as it is: text of files in it is escaped here.
void set_error(PyObject* type, const Error& error) {
  PyErr_SetString(type, escaped(shortened(error.what())).c_str());
}

void translate(std::exception_ptr pointer) {
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const InvalidArgument& error) {
    set_error(classes.bad_input, error);
  } catch (const IoError& error) {
    set_error(classes.bad_input, error);
  } catch (const DeviceError& error) {
    set_error(classes.device_unavailable, error);
  } catch (const UnsupportedError& error) {
    set_error(classes.unsupported, error);
  } catch (const NumericError& error) {
    set_error(classes.numeric_mismatch, error);
  } catch (const CommError& error) {
    set_error(classes.rank_failed, error);
  } catch (const Error& error) {
    set_error(classes.error, error);
  }
}

}  // namespace

void add_errors(py::module_& module) {
  const auto runtime = py::reinterpret_borrow<py::object>(PyExc_RuntimeError);
  const auto value = py::reinterpret_borrow<py::object>(PyExc_ValueError);
  classes.error =
      add(module, "Error", "Base of the exceptions of Triptych.", py::make_tuple(runtime));
  const auto base = py::reinterpret_borrow<py::object>(classes.error);
  const auto derived = py::make_tuple(base);
  classes.bad_input =
      add(module, "BadInput", "A shape, a dtype, an attribute, an option or a file that is wrong.",
          py::make_tuple(base, value));
  classes.device_unavailable =
      add(module, "DeviceUnavailable", "A machine or its driver is missing or failed.", derived);
  classes.unsupported =
      add(module, "Unsupported", "Well-formed, but the asked machine cannot do it.", derived);
  classes.numeric_mismatch =
      add(module, "NumericMismatch",
          "Numbers that are not finite, or not equal where equality was promised.", derived);
  classes.rank_failed = add(module, "RankFailed", "A rank died, stalled or disagreed.", derived);
  py::register_exception_translator(translate);
}

}  // namespace triptych::python
