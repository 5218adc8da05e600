// An integer that cannot be mistaken for another kind of integer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace triptych {

/// Index into the list that `Tag` names. A default-constructed id is invalid ("none").
template <class Tag>
struct StrongId {
  std::int32_t value = -1;

  bool valid() const { return value >= 0; }
  std::size_t index() const { return static_cast<std::size_t>(value); }
  auto operator<=>(const StrongId&) const = default;  // NOLINT(modernize-use-nullptr)
};

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;

}  // namespace triptych

template <class Tag>
struct std::hash<triptych::StrongId<Tag>> {
  std::size_t operator()(triptych::StrongId<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
