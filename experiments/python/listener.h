// A Python object that receives the events of training, and may stop it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <exception>

#include "experiments/python/gate.h"
#include "experiments/training/training_run.h"

namespace triptych::python {

pybind11::dict epoch_dict(const training::EpochReport& report);

/// Calls its object during training. An exception in a call, also of a signal's handler, or a
/// result other than None stops the run at its next safe point. So does the interpreter's end. To
/// be made and destroyed with the GIL.
class Listener {
 public:
  Listener(pybind11::object told, std::atomic<bool>& interrupted)
      : told_(std::move(told)), interrupted_(interrupted) {}

  /// Tells on_note, on_step, on_image, on_epoch. The listener must outlive it.
  training::Observer observer();

  /// Without the GIL.
  template <class... Values>
  void call(const char* method, const Values&... values) {
    if (gate_closes()) interrupted_ = true;
    const pybind11::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
      if (!told_.attr(method)(values...).is_none()) interrupted_ = true;
    } catch (const pybind11::error_already_set&) {
      if (!raised_) raised_ = std::current_exception();
      interrupted_ = true;
    }
  }
  /// Rethrows the first exception.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  pybind11::object told_;
  std::atomic<bool>& interrupted_;
  std::exception_ptr raised_;
};

}  // namespace triptych::python
