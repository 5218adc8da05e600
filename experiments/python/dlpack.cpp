// SPDX-License-Identifier: Apache-2.0
#include "experiments/python/dlpack.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/error.h"

namespace py = pybind11;

namespace triptych::python {
namespace {

// The structures of DLPack 0.x (https://dmlc.github.io/dlpack/latest/c_api.html), which never
// change.
constexpr std::int32_t kProcessor = 1;
constexpr std::uint8_t kBfloat = 4;
constexpr const char* kUnused = "dltensor";
constexpr const char* kUsed = "used_dltensor";

struct DlTensor {
  void* data;
  struct {
    std::int32_t type, id;
  } device;
  std::int32_t rank;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements. nullptr: dense
  std::uint64_t byte_offset;
};

struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};

/// Bytes from one element to the next along each axis.
std::vector<py::ssize_t> strides_of(const DlTensor& tensor) {
  std::vector<py::ssize_t> strides(static_cast<std::size_t>(tensor.rank));
  std::int64_t dense = 1;
  for (auto axis = strides.size(); axis-- > 0; dense *= tensor.shape[axis])
    strides[axis] = 2 * (tensor.strides == nullptr ? dense : tensor.strides[axis]);
  return strides;
}

/// An exported tensor with its shape, in elements.
struct Exported {
  DlManagedTensor managed{};
  std::vector<std::int64_t> shape, strides;
  py::array array;
};

void release(DlManagedTensor* managed) {
  const py::gil_scoped_acquire gil;  // the last reader may be any thread
  delete static_cast<Exported*>(managed->context);
}

void release_unused(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kUnused) == 0) return;  // somebody took it
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kUnused));
  managed->deleter(managed);
}

}  // namespace

std::optional<py::array> bfloat16_from_dlpack(const py::handle& object) {
  const auto device = object.attr("__dlpack_device__")().cast<std::pair<int, int>>();
  if (device.first != kProcessor) return std::nullopt;
  const auto capsule = object.attr("__dlpack__")().cast<py::object>();
  if (PyCapsule_IsValid(capsule.ptr(), kUnused) == 0) return std::nullopt;
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kUnused));
  const auto& tensor = managed->tensor;
  if (tensor.dtype.code != kBfloat || tensor.dtype.bits != 16 || tensor.dtype.lanes != 1)
    return std::nullopt;
  const auto dtype = py::dtype::from_args(py::module_::import("ml_dtypes").attr("bfloat16"));
  PyCapsule_SetName(capsule.ptr(), kUsed);
  const py::capsule keeper(managed, [](void* held) {
    auto* owned = static_cast<DlManagedTensor*>(held);
    if (owned->deleter != nullptr) owned->deleter(owned);
  });
  const std::vector<py::ssize_t> shape(tensor.shape, tensor.shape + tensor.rank);
  auto* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  return py::array(dtype, shape, strides_of(tensor), data, keeper);
}

py::capsule bfloat16_to_dlpack(const py::array& array) {
  if (!py::str(array.dtype().attr("name")).equal(py::str("bfloat16")) || !array.writeable())
    throw InvalidArgument("only a writable array of bfloat16 is handed on like this");
  auto exported = std::make_unique<Exported>();
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) {
    exported->shape.push_back(array.shape(axis));
    exported->strides.push_back(array.strides(axis) / 2);
  }
  exported->array = array;
  auto& managed = exported->managed;
  managed.tensor = {.data = const_cast<void*>(array.data()),
                    .device = {kProcessor, 0},
                    .rank = static_cast<std::int32_t>(array.ndim()),
                    .dtype = {kBfloat, 16, 1},
                    .shape = exported->shape.data(),
                    .strides = exported->strides.data(),
                    .byte_offset = 0};
  managed.context = exported.get();
  managed.deleter = release;
  auto* capsule = PyCapsule_New(&managed, kUnused, release_unused);
  if (capsule == nullptr) throw py::error_already_set();
  exported.release();  // NOLINT(bugprone-unused-return-value): the capsule has it now
  return py::reinterpret_steal<py::capsule>(capsule);
}

}  // namespace triptych::python
