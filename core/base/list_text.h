// Lists as people write them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triptych {

/// The parts of "a,b,c". An empty text is one empty part.
std::vector<std::string> split_list(const std::string& text);
/// "1 image", "2 images": `noun` with an s but after 1.
std::string counted(std::int64_t count, std::string_view noun);
/// "1,2,4" and "64..512" (doubling) and mixtures of both as numbers. Throws InvalidArgument.
std::vector<std::int64_t> parse_numbers(const std::string& text);

}  // namespace triptych
