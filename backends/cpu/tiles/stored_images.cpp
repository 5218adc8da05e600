// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/stored_images.h"

#include <algorithm>

namespace triptych::cpu {

StoredImages::StoredImages(const Operand& operand)
    : format_(operand.channels_last.value()),
      channels_(operand.spec.shape[1]),
      rows_(operand.spec.shape[2]),
      columns_(operand.spec.shape[3]),
      element_bytes_(static_cast<std::int64_t>(dtype_size(format_.dtype))) {}

void StoredImages::clear(std::byte* data, std::int64_t image, std::int64_t row,
                         Range columns) const {
  auto* to = data + element(image, row, columns.begin) * element_bytes_;
  const auto position = pitch() * element_bytes_, own = channels_ * element_bytes_;
  if (position == own) {
    std::fill_n(to, columns.size() * own, std::byte{0});
    return;
  }
  for (std::int64_t i = 0; i < columns.size(); ++i)
    std::fill_n(to + i * position, own, std::byte{0});
}

void StoredImages::clear_around(std::byte* data, std::int64_t image, Range rows) const {
  const auto pad = format_.pad;
  if (pad == 0) return;
  const Range whole = {-pad, columns_ + pad};
  for (auto row = rows.begin; row < rows.end; ++row) {
    clear(data, image, row, {-pad, 0});
    clear(data, image, row, {columns_, columns_ + pad});
  }
  for (std::int64_t i = 1; i <= pad; ++i) {
    if (rows.begin == 0) clear(data, image, -i, whole);
    if (rows.end == rows_) clear(data, image, rows_ - 1 + i, whole);
  }
}

}  // namespace triptych::cpu
