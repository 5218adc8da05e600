// The name that a misspelt one most likely meant.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace triptych {

/// The name in `names` that `word` most likely meant. Empty when none is near.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

}  // namespace triptych
