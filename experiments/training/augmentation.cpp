// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/augmentation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/list_text.h"

namespace triptych::training {
namespace {

/// Words for sets of changes.
constexpr std::string_view kNone = "none";
constexpr std::pair<std::string_view, std::string_view> kSets[] = {
    {"all", "flips,rotate,elastic"},
    {"strong", "flips,rotate,elastic,scale,blur,brightness,contrast,gamma,noise"}};

}  // namespace

Augmentation Augmentation::from_text(std::string_view text) {
  Augmentation result;
  if (text == kNone) return result;
  for (const auto& [word, list] : kSets)
    if (text == word) return from_text(list);
  for (const auto& part : split_list(std::string(text))) {
    const auto* const found =
        std::ranges::find(kNamesOf<Change>, part, [](const auto& entry) { return entry.second; });
    if (found == kNamesOf<Change>.end()) {
      throw InvalidArgument(
          fmt::format("must be none, all, strong, or a list with commas of {}; got \"{}\"",
                      fmt::join(names_of<Change>(), ", "), text));
    }
    result.bits_ |= bit(found->first);
  }
  return result;
}

std::string Augmentation::text() const {
  if (bits_ == 0) return std::string(kNone);
  for (const auto& [word, list] : kSets)
    if (*this == from_text(list)) return std::string(word);
  std::vector<std::string_view> names;
  for (const auto& [change, name] : kNamesOf<Change>)
    if (has(change)) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace triptych::training
