// Enumerations whose values have names, on command lines and in files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace triptych {

/// The values of E with their names: an array of pairs, specialised beside each such enumeration.
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

/// "threads, mpi, nccl".
template <Named E>
std::string names_of() {
  std::string list;
  for (const auto& [one, name] : kNamesOf<E>)
    list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

/// The value of that name. Throws InvalidArgument "must be one of ..." for another text.
template <Named E>
E value_of(std::string_view text) {
  for (const auto& [one, name] : kNamesOf<E>)
    if (name == text) return one;
  throw InvalidArgument("must be one of " + names_of<E>() + ", got \"" + std::string(text) + "\"");
}

}  // namespace triptych
