// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/grain.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kTileBytes = 32 * 1024;  // both sides of a tile stay in the L1 cache
constexpr std::int64_t kTransposedRows = 64;
constexpr std::int64_t kLineBytes = 64;

template <class Axis>
void copy_rows(const std::byte* x, std::byte* y, const Axis& rows, const Axis& columns) {
  const auto bytes = static_cast<std::size_t>(columns.size * columns.y_stride);
  for (std::int64_t r = 0; r < rows.size; ++r) {
    std::memcpy(y + r * rows.y_stride, x + r * rows.x_stride, bytes);
  }
}

// One value per row. A fixed-size memcpy is one load or store of any type that has this size.
template <std::size_t Size, class Axis>
void repeat_columns(const std::byte* x, std::byte* y, const Axis& rows, const Axis& columns) {
  for (std::int64_t r = 0; r < rows.size; ++r) {
    std::byte value[Size];
    std::memcpy(value, x + r * rows.x_stride, Size);
    std::byte* target = y + r * rows.y_stride;
    for (std::int64_t c = 0; c < columns.size; ++c) {
      std::memcpy(target + c * static_cast<std::int64_t>(Size), value, Size);
    }
  }
}

template <std::size_t Size, class Axis>
void copy_elements(const std::byte* x, std::byte* y, const Axis& rows, const Axis& columns) {
  for (std::int64_t r = 0; r < rows.size; ++r) {
    const std::byte* source = x + r * rows.x_stride;
    std::byte* target = y + r * rows.y_stride;
    for (std::int64_t c = 0; c < columns.size; ++c) {
      std::memcpy(target + c * columns.y_stride, source + c * columns.x_stride, Size);
    }
  }
}

// x is contiguous along the rows, y along the columns. Moves words of any type as floats,
// unchanged.
template <class Axis>
void transpose_words(const std::byte* x, std::byte* y, const Axis& rows, const Axis& columns) {
  constexpr auto word = static_cast<std::int64_t>(sizeof(float));
  transpose_matrix(
      {reinterpret_cast<const float*>(x), columns.x_stride / word, columns.size, rows.size},
      reinterpret_cast<float*>(y), rows.y_stride / word, Rounding::None);
}

/// The tile function for elements of `Size` bytes.
template <std::size_t Size, class Axis>
auto tile_function(const Axis& rows, const Axis& columns) {
  const auto dense = static_cast<std::int64_t>(Size);
  if (columns.y_stride == dense && columns.x_stride == dense) return &copy_rows<Axis>;
  if (columns.y_stride == dense && columns.x_stride == 0) return &repeat_columns<Size, Axis>;
  if constexpr (Size == sizeof(float)) {
    const bool transposes = columns.y_stride == dense && rows.x_stride == dense;
    if (transposes && columns.x_stride > 0 && rows.y_stride > 0) return &transpose_words<Axis>;
  }
  return &copy_elements<Size, Axis>;
}

template <class Axis>
auto tile_function(std::int64_t element_size, const Axis& rows, const Axis& columns) {
  switch (element_size) {
    case 1:
      return tile_function<1>(rows, columns);
    case 2:
      return tile_function<2>(rows, columns);
    case 4:
      return tile_function<4>(rows, columns);
    default:
      TRIPTYCH_ASSERT(element_size == 8);
      return tile_function<8>(rows, columns);
  }
}

}  // namespace

std::vector<StridedCopy::Axis> StridedCopy::merged_axes(const StridedView& from,
                                                        const StridedView& to,
                                                        std::int64_t element_size) {
  std::vector<Axis> axes;
  for (std::size_t a = 0; a < from.strides.size(); ++a) {
    const Axis axis{from.shape.dims()[a], from.strides[a] * element_size,
                    to.strides[a] * element_size};
    if (axis.size == 1) continue;
    const bool continues = !axes.empty() && axes.back().x_stride == axis.size * axis.x_stride &&
                           axes.back().y_stride == axis.size * axis.y_stride;
    if (continues) {
      axes.back() = {axes.back().size * axis.size, axis.x_stride, axis.y_stride};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

StridedCopy::StridedCopy(const StridedView& from, const StridedView& to, std::size_t element_size)
    : outer_(merged_axes(from, to, static_cast<std::int64_t>(element_size))),
      x_offset_(from.offset * static_cast<std::int64_t>(element_size)),
      y_offset_(to.offset * static_cast<std::int64_t>(element_size)) {
  TRIPTYCH_ASSERT(from.shape == to.shape);
  if (from.shape.elements() == 0) return;
  choose_plane(static_cast<std::int64_t>(element_size));
  tiles_ = ceil_div(rows_.size, tile_rows_) * ceil_div(columns_.size, tile_columns_);
  for (const auto& axis : outer_) tiles_ *= axis.size;
  grain_ = grain_of(tile_rows_ * tile_columns_);
}

void StridedCopy::choose_plane(std::int64_t element_size) {
  columns_ = {1, element_size, element_size};
  if (!outer_.empty()) {
    columns_ = outer_.back();
    outer_.pop_back();
  }
  // Where x is not contiguous along y's last axis, the other axis of the plane is the one along
  // which it is: then both sides move in whole cache lines.
  auto rows = outer_.end();
  if (columns_.x_stride != element_size) {
    rows = std::find_if(outer_.begin(), outer_.end(),
                        [&](const Axis& axis) { return axis.x_stride == element_size; });
  }
  const bool transposes = rows != outer_.end();
  if (!transposes && !outer_.empty()) --rows;
  if (rows != outer_.end()) {
    rows_ = *rows;
    outer_.erase(rows);
  }
  const auto widest = (transposes ? kLineBytes : kTileBytes) / element_size;
  tile_columns_ = std::min(columns_.size, widest);
  const auto tallest = transposes ? kTransposedRows : kTileBytes / (tile_columns_ * element_size);
  tile_rows_ = std::min(rows_.size, tallest);
  copy_tile_ = tile_function(element_size, rows_, columns_);
}

void StridedCopy::copy_tiles(const std::byte* x, std::byte* y, std::int64_t begin,
                             std::int64_t end) const {
  const auto across = ceil_div(columns_.size, tile_columns_);
  const auto down = ceil_div(rows_.size, tile_rows_);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const auto column = tile % across * tile_columns_;
    const auto row = tile / across % down * tile_rows_;
    auto x_tile = x + row * rows_.x_stride + column * columns_.x_stride;
    auto y_tile = y + row * rows_.y_stride + column * columns_.y_stride;
    auto rest = tile / across / down;
    for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
      x_tile += rest % axis->size * axis->x_stride;
      y_tile += rest % axis->size * axis->y_stride;
      rest /= axis->size;
    }
    copy_tile_(
        x_tile, y_tile, {std::min(tile_rows_, rows_.size - row), rows_.x_stride, rows_.y_stride},
        {std::min(tile_columns_, columns_.size - column), columns_.x_stride, columns_.y_stride});
  }
}

void StridedCopy::run(const std::byte* x, std::byte* y) const {
  parallel_for(tiles_, grain_, [&](std::int64_t begin, std::int64_t end) {
    copy_tiles(x + x_offset_, y + y_offset_, begin, end);
  });
}

Fill::Fill(const Operand& y, Tensor value)
    : value_(std::move(value)),
      copy_(broadcast_view(dense_view(value_.shape()), y.spec.shape), operand_view(y),
            dtype_size(y.spec.dtype)) {}

}  // namespace triptych::cpu
