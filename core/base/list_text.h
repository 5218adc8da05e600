// Lists as people write them, and the lines of a text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triptych {

/// The text without the spaces at its ends.
std::string_view trimmed(std::string_view text);
/// The parts of "a, b, c", trimmed. An empty text is one empty part.
std::vector<std::string> split_list(const std::string& text);
/// The lines without their ends. They are part of `text`. An empty text has none.
std::vector<std::string_view> split_lines(std::string_view text);
/// "1 image", "2 images", "3 processes": the count with its noun in singular or plural.
std::string counted(std::int64_t count, std::string_view noun);
/// "1,2,4" and "64..512" (doubling) and mixtures of both as numbers. Throws InvalidArgument.
std::vector<std::int64_t> parse_numbers(const std::string& text);

}  // namespace triptych
