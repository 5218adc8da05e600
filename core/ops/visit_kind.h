// A kind that is known at run time as a constant of the compiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

namespace triptych {

/// visit(std::integral_constant<Kind, kind>()) for one of the kinds from 0 to kLast.
template <auto kLast, class Visit>
auto visit_kind(decltype(kLast) kind, const Visit& visit) {
  using Kind = decltype(kLast);
  const auto among = [&]<int... kKinds>(std::integer_sequence<int, kKinds...>) {
    decltype(visit(std::integral_constant<Kind, kLast>())) result{};
    ((static_cast<int>(kind) == kKinds
          ? void(result = visit(std::integral_constant<Kind, static_cast<Kind>(kKinds)>()))
          : void()),
     ...);
    return result;
  };
  return among(std::make_integer_sequence<int, static_cast<int>(kLast) + 1>());
}

}  // namespace triptych
