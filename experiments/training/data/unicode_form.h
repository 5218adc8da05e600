// File names with equal looks. Unicode stores an accented letter as one code point (NFC) or as the
// letter and its marks (NFD, as macOS does).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace triptych::segmentation {

/// True for two UTF-8 texts that may differ in their Unicode form alone. All unaccented letters are
/// equal, and accented ones have the same positions. It has no table of letters, so that "ä" in one
/// form may match "ö" in the other. Use it for messages.
bool differ_in_unicode_form(std::string_view one, std::string_view other);

}  // namespace triptych::segmentation
