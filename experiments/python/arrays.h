// Arrays of Python as tensors and back: NumPy's, and those of whoever speaks DLPack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <span>
#include <string_view>

#include "core/tensor/tensor.h"

namespace triptych::python {

/// An array, read in place: dense and row-major. Holds the array, so that the memory lives as long.
/// Create and destroy it with the GIL.
struct ArrayView {
  pybind11::array array;
  TensorSpec spec;

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(array.data()), spec.bytes()};
  }
  Tensor copy() const;
};

/// `object` as a view: a NumPy array as it lies, a tensor with `__dlpack__` by NumPy's from_dlpack,
/// anything else by NumPy's asarray, Python's own floats as f32. Only an array that is not dense is
/// copied. Throws InvalidArgument, beginning with `name`, for a dtype that Triptych lacks.
ArrayView view_array(const pybind11::handle& object, std::string_view name);

/// A NumPy array that owns the tensor's memory, without a copy. bf16 has the dtype of the package
/// ml_dtypes. Throws UnsupportedError where that is not installed.
pybind11::array to_array(Tensor tensor);

/// A dtype from its name ("f32"), a NumPy dtype, or anything that NumPy converts to one
/// (np.float32).
DType parse_dtype(const pybind11::handle& object);

}  // namespace triptych::python
