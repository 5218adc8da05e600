// Suggestions for a misspelt name: the nearest known name, or the one for a common synonym.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triptych {

/// The name in `names` that `word` most likely meant; empty when none is near. Upper case,
/// underscores and leading dashes do not count, unless a name equals `word`. A transposition counts
/// as one edit.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean "cuda"?", or an empty text when no name is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

}  // namespace triptych
