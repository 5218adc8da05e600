// Text from files and other programs: shown only in a form that cannot harm a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych {

/// `text` when it is valid UTF-8 without control characters and at most 65535 bytes, not empty.
/// Throws IoError. `of` is the owner of the name.
std::string checked_name(const std::string& text, const std::string& of);

/// True for a text with a byte that steers a terminal: below 32, or 127.
bool has_control_characters(std::string_view text);

/// `text` for a terminal. Escapes (\u001b) replace control characters (C0, DEL and C1), marks that
/// change the direction or the line of later text, and (\xff) bytes that are not UTF-8. Tabs and
/// line ends stay, but CR LF becomes LF. A JSON document keeps its meaning.
std::string escaped(std::string_view text);

/// `text` as part of a message: of a long one the first 8192 bytes, and how many follow.
std::string shortened(std::string_view text);

/// `text` without the mark (EF BB BF) that some programs put before UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// `text` with everything but printable UTF-8 replaced by "?", at most 200 bytes.
std::string shown(std::string_view text);

}  // namespace triptych
