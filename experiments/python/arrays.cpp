// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "experiments/python/dlpack.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

/// NumPy's letter for a kind of dtype.
char kind_of(DType dtype) {
  if (dtype == DType::Bool) return 'b';
  if (dtype == DType::U8) return 'u';
  return is_floating(dtype) ? 'f' : 'i';
}

std::optional<DType> find_dtype(const py::dtype& dtype) {
  const auto size = static_cast<std::size_t>(dtype.itemsize());
  if (dtype.kind() == 'V') {
    const bool bfloat16 = size == 2 && py::str(dtype.attr("name")).equal(py::str("bfloat16"));
    return bfloat16 ? std::optional(DType::BF16) : std::nullopt;
  }
  if (dtype.byteorder() == '>') return std::nullopt;
  for (const auto candidate : kAllDTypes) {
    if (candidate == DType::BF16) continue;
    if (kind_of(candidate) == dtype.kind() && dtype_size(candidate) == size) return candidate;
  }
  return std::nullopt;
}

DType require_dtype(const py::dtype& dtype, std::string_view name) {
  if (const auto found = find_dtype(dtype)) return *found;
  throw InvalidArgument(fmt::format(
      "{} is {}, which no machine here computes with; convert it, for example with "
      ".astype(numpy.float32); dtypes: float32, float16, bfloat16 (of ml_dtypes), int8, uint8, "
      "int32, int64, bool, in this processor's byte order",
      name, std::string(py::str(static_cast<const py::object&>(dtype)))));
}

py::dtype make_numpy_dtype(DType dtype) {
  if (dtype == DType::BF16) {
    try {
      return py::dtype::from_args(py::module_::import("ml_dtypes").attr("bfloat16"));
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_ImportError)) throw;
      throw UnsupportedError("NumPy itself has no bfloat16; pip install ml_dtypes");
    }
  }
  return py::dtype(fmt::format("{}{}", kind_of(dtype), dtype_size(dtype)));
}

/// Each is made once, which takes longer than a small operator.
const py::dtype& numpy_dtype(DType dtype) {
  static auto* const made = new std::map<DType, py::dtype>;  // outlives the interpreter
  auto found = made->find(dtype);
  if (found == made->end()) found = made->emplace(dtype, make_numpy_dtype(dtype)).first;
  return found->second;
}

/// True for floats of Python and for nests of lists that hold some: they become f32, as literals
/// do.
bool made_of_python_floats(const py::handle& object) {
  if (PyFloat_Check(object.ptr()) != 0) return true;
  if (PyList_Check(object.ptr()) == 0 && PyTuple_Check(object.ptr()) == 0) return false;
  const auto items = py::reinterpret_borrow<py::sequence>(object);
  return std::any_of(items.begin(), items.end(),
                     [](const py::handle& item) { return made_of_python_floats(item); });
}

/// The Python exception, without its traceback.
std::string sentence_of(const py::error_already_set& error) { return py::str(error.value()); }

py::array from_dlpack(const py::module_& numpy, const py::handle& object) {
  try {
    return numpy.attr("from_dlpack")(object);
  } catch (const py::error_already_set&) {
    if (auto bfloat16 = bfloat16_from_dlpack(object)) return std::move(*bfloat16);
    throw;
  }
}

py::array as_array(const py::handle& object, std::string_view name) {
  if (py::isinstance<py::array>(object)) return py::reinterpret_borrow<py::array>(object);
  const auto numpy = py::module_::import("numpy");
  try {
    if (py::hasattr(object, "__dlpack__")) return from_dlpack(numpy, object);
    if (made_of_python_floats(object)) return numpy.attr("asarray")(object, "float32");
    return numpy.attr("asarray")(object);
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt) || error.matches(PyExc_MemoryError)) throw;
    throw InvalidArgument(fmt::format("{} is no array: {}", name, sentence_of(error)));
  }
}

}  // namespace

Tensor ArrayView::copy() const {
  Tensor tensor(spec);
  std::ranges::copy(bytes(), tensor.bytes().begin());
  return tensor;
}

ArrayView view_array(const py::handle& object, std::string_view name) {
  auto array = as_array(object, name);
  const auto dtype = require_dtype(array.dtype(), name);
  if ((array.flags() & py::array::c_style) == 0) {
    array = py::module_::import("numpy").attr("ascontiguousarray")(array);
  }
  Shape shape(Dims(array.shape(), array.shape() + array.ndim()));
  return {std::move(array), {dtype, std::move(shape)}};
}

py::array to_array(Tensor tensor) {
  const auto& dtype = numpy_dtype(tensor.dtype());
  auto owner = std::make_unique<Tensor>(std::move(tensor));
  const auto& shape = owner->shape().dims();
  auto* data = owner->bytes().data();
  const std::vector<py::ssize_t> dims(shape.begin(), shape.end());
  py::capsule keeper(owner.get(), [](void* held) { delete static_cast<Tensor*>(held); });
  owner.release();  // NOLINT(bugprone-unused-return-value): the capsule has it now
  return {dtype, dims, data, keeper};
}

DType parse_dtype(const py::handle& object) {
  if (py::isinstance<py::str>(object)) {
    const auto text = object.cast<std::string>();
    for (const auto dtype : kAllDTypes) {
      if (to_string(dtype) == text) return dtype;
    }
  }
  try {
    return require_dtype(py::dtype::from_args(py::reinterpret_borrow<py::object>(object)), "dtype");
  } catch (py::error_already_set& error) {
    throw InvalidArgument(fmt::format("no dtype: {}", sentence_of(error)));
  }
}

}  // namespace triptych::python
