// Enumerations with named values, for command lines and files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace triptych {

/// The values of E with their names: an array of pairs, specialised next to each such enumeration.
template <class E>
inline constexpr int kNamesOf = 0;

template <class E>
concept Named = requires {
  kNamesOf<E>.size();
};

/// The name of a value, which must be in the list.
template <Named E>
constexpr std::string_view name_of(E value) {
  for (const auto& [one, name] : kNamesOf<E>)
    if (one == value) return name;
  return {};
}

template <Named E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  names.reserve(kNamesOf<E>.size());
  for (const auto& [one, name] : kNamesOf<E>) names.emplace_back(name);
  return names;
}

/// The value of that name. Throws InvalidArgument "must be one of ..." for another text.
template <Named E>
E value_of(std::string_view text) {
  for (const auto& [one, name] : kNamesOf<E>)
    if (name == text) return one;
  std::string list;
  for (const auto& name : names_of<E>()) list += (list.empty() ? "" : ", ") + name;
  throw InvalidArgument("must be one of " + list + ", got \"" + std::string(text) + "\"");
}

}  // namespace triptych
