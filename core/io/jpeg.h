// JPEG pictures, grey or RGB, under the limits of PNG. Pixels come as they are stored, with the
// orientation that a camera noted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "core/io/image.h"

namespace triptych {

bool is_jpeg(std::span<const std::byte> file);

/// The picture without its samples. Throws IoError (without a file name).
Image decode_jpeg_header(std::span<const std::byte> file, const ImageLimits& limits = {});

/// Throws IoError for anything that is damaged, truncated or too large, too.
Image decode_jpeg(std::span<const std::byte> file, const ImageLimits& limits = {});

}  // namespace triptych
