// Names below pictures, in letters of 5 by 7 pixels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/io/image.h"

namespace triptych::segmentation {

inline constexpr std::int64_t kLetterHeight = 7;

/// `text` in printable ASCII, with ".." in its middle where it exceeds `width` pixels. Other
/// characters become question marks.
std::string fitting(std::string_view text, std::int64_t width);

/// Draws fitting(text, width) in black. The first letter begins at (left, top).
void draw_text(std::string_view text, std::int64_t left, std::int64_t top, std::int64_t width,
               Image& image);

}  // namespace triptych::segmentation
