// SPDX-License-Identifier: Apache-2.0
#include "core/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace triptych {
namespace {

/// Levenshtein distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
  std::string nearest;
  std::size_t best = 3;
  for (const auto& name : names) {
    const bool begins = word.size() > 2 && name.starts_with(word);
    const auto away = begins ? 1 : distance(word, name);
    // The shortest of names that begin with the word.
    const bool shorter = begins && name.size() < nearest.size();
    if (away >= best && !shorter) continue;
    best = away;
    nearest = name;
  }
  return nearest;
}

}  // namespace triptych
