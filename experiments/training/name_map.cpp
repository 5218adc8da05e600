// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/name_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/io/input_file.h"
#include "core/io/strict_json.h"

namespace triptych::training {
namespace {

constexpr std::int64_t kMaxBytes = 1 << 22;

/// The text that "*" stands for when `pattern` fits `name`. Nothing when it does not.
std::optional<std::string> match(const std::string& pattern, const std::string& name) {
  const auto star = pattern.find('*');
  if (star == std::string::npos) return pattern == name ? std::optional("") : std::nullopt;
  const auto head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  const bool fits =
      name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
  if (!fits) return std::nullopt;
  return name.substr(star, name.size() - head.size() - tail.size());
}

void require_pair(const std::string& own, const std::string& there) {
  const auto stars = [](const std::string& name) { return std::ranges::count(name, '*'); };
  if (!own.empty() && !there.empty() && stars(own) <= 1 && stars(own) == stars(there)) return;
  throw IoError(fmt::format(
      "\"{:.100}\" and \"{:.100}\" are no pair of names: each has one \"*\", or none has", own,
      there));
}

}  // namespace

NameMap::NameMap(const std::filesystem::path& file) {
  const InputFile input(file, kMaxBytes);
  input.named([&] {
    using Json = nlohmann::ordered_json;
    const auto json = parse_strict<Json>(input.read_text(0, input.size()));
    if (!json.is_object()) throw IoError("it is no JSON object of names");
    for (const auto& [own, there] : json.items()) {
      if (!there.is_string()) throw IoError(fmt::format("\"{:.100}\" has no name", own));
      pairs_.emplace_back(own, there.get<std::string>());
      require_pair(own, pairs_.back().second);
    }
  });
}

std::string NameMap::there(const std::string& own) const {
  for (const auto& [pattern, there] : pairs_) {
    const auto star = match(pattern, own);
    if (!star) continue;
    const auto place = there.find('*');
    return place == std::string::npos ? there
                                      : there.substr(0, place) + *star + there.substr(place + 1);
  }
  return own;
}

std::vector<std::string> NameMap::unused(const std::vector<std::string>& own) const {
  std::vector<std::string> patterns;
  for (const auto& pair : pairs_) {
    const auto fits = [&](const std::string& name) { return match(pair.first, name).has_value(); };
    if (std::ranges::none_of(own, fits)) patterns.push_back(pair.first);
  }
  return patterns;
}

}  // namespace triptych::training
