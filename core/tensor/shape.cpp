// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/error.h"

namespace triptych {

Shape::Shape(Dims dims) : dims_(std::move(dims)) {
  bool empty = false;
  for (const auto size : dims_) {
    if (size < 0) throw InvalidArgument("negative size in shape " + to_string(*this));
    empty = empty || size == 0;
    elements_ = checked_mul(elements_, std::max<std::int64_t>(size, 1));
  }
  if (empty) elements_ = 0;
}

std::int64_t Shape::dim(std::int64_t axis) const { return (*this)[normalize_axis(axis, rank())]; }

Dims Shape::strides() const {
  Dims strides(dims_.size(), 1);
  for (auto axis = rank() - 2; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    strides[a] = strides[a + 1] * dims_[a + 1];
  }
  return strides;
}

std::int64_t Shape::elements_between(std::int64_t first, std::int64_t last) const {
  std::int64_t product = 1;
  for (auto axis = first; axis < last; ++axis) product *= (*this)[axis];
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + "]";
}

std::int64_t normalize_axis(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) {
    throw InvalidArgument("axis " + std::to_string(axis) + " is outside rank " +
                          std::to_string(rank));
  }
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const auto rank = std::max(a.rank(), b.rank());
  Dims dims(static_cast<std::size_t>(rank), 1);
  for (std::int64_t i = 1; i <= rank; ++i) {
    const auto size_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const auto size_b = i <= b.rank() ? b[b.rank() - i] : 1;
    if (size_a != size_b && size_a != 1 && size_b != 1) {
      throw InvalidArgument("shapes " + to_string(a) + " and " + to_string(b) +
                            " do not broadcast");
    }
    dims[static_cast<std::size_t>(rank - i)] = size_a == 1 ? size_b : size_a;
  }
  return Shape(std::move(dims));
}

Dims broadcast_strides(const Shape& from, const Shape& to) {
  const auto own = from.strides();
  Dims strides(static_cast<std::size_t>(to.rank()), 0);
  for (std::int64_t i = 1; i <= from.rank(); ++i) {
    const auto axis = from.rank() - i;
    if (from[axis] != 1) {
      strides[static_cast<std::size_t>(to.rank() - i)] = own[static_cast<std::size_t>(axis)];
    }
  }
  return strides;
}

std::int64_t flat_index(std::span<const std::int64_t> index,
                        std::span<const std::int64_t> strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

}  // namespace triptych
