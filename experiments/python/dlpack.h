// bfloat16 by DLPack, which NumPy's own exchange lacks. All else goes through NumPy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <optional>

namespace triptych::python {

/// Tensor of an object with `__dlpack__` as an array of ml_dtypes.bfloat16 on its memory, which the
/// array keeps alive. Nothing when it is no bfloat16 tensor in the processor's memory.
std::optional<pybind11::array> bfloat16_from_dlpack(const pybind11::handle& object);

/// A capsule "dltensor" of an array of bfloat16, which it keeps alive. Others read and write the
/// same memory.
pybind11::capsule bfloat16_to_dlpack(const pybind11::array& array);

}  // namespace triptych::python
