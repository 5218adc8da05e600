// Static shapes, row-major (the last dimension is contiguous), and NumPy-style broadcasting.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace triptych {

using Dims = std::vector<std::int64_t>;

/// Sizes of a tensor's dimensions. Each >= 0, the element count below 2^63. Rank 0 is a scalar.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(Dims(dims)) {}
  /// Throws InvalidArgument for a negative size or an element count that overflows.
  explicit Shape(Dims dims);

  std::int64_t rank() const { return static_cast<std::int64_t>(dims_.size()); }
  std::int64_t elements() const { return elements_; }
  std::int64_t operator[](std::int64_t axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  /// `axis` may be negative (counted from the end). Throws InvalidArgument when out of range.
  std::int64_t dim(std::int64_t axis) const;
  const Dims& dims() const { return dims_; }
  /// Distance in elements between neighbours along each axis.
  Dims strides() const;
  /// Product of the sizes of axes [first, last).
  std::int64_t elements_between(std::int64_t first, std::int64_t last) const;

  bool operator==(const Shape& other) const { return dims_ == other.dims_; }

 private:
  Dims dims_;
  std::int64_t elements_ = 1;
};

/// "[1, 8, 64, 64]".
std::string to_string(const Shape& shape);

/// `axis` counted from the front. Throws InvalidArgument when it is not in [-rank, rank).
std::int64_t normalize_axis(std::int64_t axis, std::int64_t rank);

/// The shape that both broadcast to (NumPy's rule). Throws InvalidArgument when there is none.
Shape broadcast_shapes(const Shape& a, const Shape& b);

/// Strides with which `from` is read as if it had shape `to`: 0 along broadcast axes.
Dims broadcast_strides(const Shape& from, const Shape& to);

/// Calls `visit(indices)` for each index tuple of `shape` in row-major order.
template <class Visitor>
void for_each_index(const Shape& shape, Visitor&& visit) {
  Dims index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t n = 0; n < shape.elements(); ++n) {
    visit(static_cast<const Dims&>(index));
    for (auto axis = shape.rank() - 1; axis >= 0; --axis) {
      auto& i = index[static_cast<std::size_t>(axis)];
      if (++i < shape[axis]) break;
      i = 0;
    }
  }
}

/// Sum of index[i] * strides[i].
std::int64_t flat_index(std::span<const std::int64_t> index, std::span<const std::int64_t> strides);

}  // namespace triptych
