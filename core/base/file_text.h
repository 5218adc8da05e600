// Texts that stand in a file: shown only when they cannot harm a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych {

/// `text` when it is valid UTF-8 without control characters and at most 65535 bytes, not empty.
/// Throws IoError; `of` says whose name it is.
std::string checked_name(const std::string& text, const std::string& of);

/// True for a text with a byte that steers a terminal: below 32, or 127.
bool has_control_characters(std::string_view text);

/// `text` with "?" for each of them but tabs and the ends of lines.
std::string without_control_characters(std::string_view text);

/// `text` without the mark (EF BB BF) that some programs put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// `text` with everything but printable UTF-8 replaced by "?", at most 200 bytes.
std::string shown(std::string_view text);

}  // namespace triptych
