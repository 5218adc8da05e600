// A tensor in host memory, and the description (dtype, shape) of a tensor anywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace triptych {

/// Type of a value, without its data.
struct TensorSpec {
  DType dtype = DType::F32;
  Shape shape;

  /// Bytes of the dense row-major data. Throws InvalidArgument on overflow.
  std::size_t bytes() const;
  bool operator==(const TensorSpec&) const = default;
};

/// "f32[1, 8, 64, 64]".
std::string to_string(const TensorSpec& spec);

/// Alignment of every tensor and arena, in bytes: one cache line, one AVX-512 register.
inline constexpr std::size_t kAlignment = 64;

/// Frees memory of allocate_aligned.
struct AlignedDeleter {
  void operator()(std::byte* memory) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDeleter>;

/// `bytes` of zeroed memory aligned to kAlignment. Throws std::bad_alloc.
AlignedBytes allocate_aligned(std::size_t bytes);

/// Dense, row-major and owning. Move-only, so that no large copy is hidden. Zero-initialised.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorSpec spec);
  /// Copies `values` (row-major). Throws InvalidArgument when the count does not match `shape`.
  template <class T>
  Tensor(Shape shape, std::span<const T> values);
  template <class T>
  Tensor(Shape shape, const std::vector<T>& values)
      : Tensor(std::move(shape), std::span<const T>(values)) {}

  const TensorSpec& spec() const { return spec_; }
  const Shape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  std::int64_t elements() const { return spec_.shape.elements(); }

  std::span<std::byte> bytes() { return {data_.get(), spec_.bytes()}; }
  std::span<const std::byte> bytes() const { return {data_.get(), spec_.bytes()}; }
  /// The elements as T. Throws InvalidArgument when T does not store this dtype.
  template <class T>
  std::span<T> as();
  template <class T>
  std::span<const T> as() const;

  Tensor clone() const;
  /// The same bytes under another shape of equally many elements.
  Tensor reshaped(Shape shape) &&;

 private:
  void require(DType dtype) const;

  TensorSpec spec_;
  AlignedBytes data_;
};

/// A rank-0 tensor.
template <class T>
Tensor scalar_tensor(T value) {
  return Tensor(Shape{}, std::span<const T>(&value, 1));
}

/// All elements as double, exact for every dtype but I64 beyond 2^53.
std::vector<double> to_doubles(const Tensor& tensor);

/// `values` rounded to `spec.dtype`: nearest even for floats, saturated truncation for integers.
Tensor from_doubles(const TensorSpec& spec, std::span<const double> values);

template <class T>
Tensor::Tensor(Shape shape, std::span<const T> values)
    : Tensor(TensorSpec{dtype_of<T>, std::move(shape)}) {
  if (static_cast<std::int64_t>(values.size()) != elements()) {
    throw InvalidArgument("shape " + to_string(this->shape()) + " needs " +
                          std::to_string(elements()) + " values, got " +
                          std::to_string(values.size()));
  }
  std::copy(values.begin(), values.end(), as<T>().begin());
}

template <class T>
std::span<T> Tensor::as() {
  require(dtype_of<T>);
  return {reinterpret_cast<T*>(data_.get()), static_cast<std::size_t>(elements())};
}

template <class T>
std::span<const T> Tensor::as() const {
  require(dtype_of<T>);
  return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(elements())};
}

}  // namespace triptych
