// The way into every machine: closed in a process that was forked from one that had computed, and
// when the interpreter ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace triptych::python {

/// While it lives, the interpreter's end waits.
class Pass {
 public:
  /// Throws DeviceError when the gate is closed, with the reason.
  Pass();
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
};

/// While it lives, other threads may have the interpreter, and it waits for this one: a thread that
/// asked for it back after its end would be torn down in the middle of C++.
class OutsidePython {
  Pass pass_;
  pybind11::gil_scoped_release others_may_run_;  // ends first
};

/// True from the end of the interpreter on: long operations stop at their next safe point.
bool gate_closes();

/// Closes the gate and waits for those who have passed it. Called at the interpreter's end.
void close_gate();

}  // namespace triptych::python
