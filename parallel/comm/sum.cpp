// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/sum.h"

#include <type_traits>

namespace triptych::parallel {
namespace {

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return T(static_cast<float>(a) + static_cast<float>(b));
  }
}

}  // namespace

void add_to(std::span<std::byte> target, std::span<const std::byte> source, DType dtype) {
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      throw InvalidArgument("booleans have no sum; cast them to i32 before they are reduced");
    } else {
      auto* to = reinterpret_cast<T*>(target.data());
      const auto* from = reinterpret_cast<const T*>(source.data());
      const std::size_t count = target.size() / sizeof(T);
      for (std::size_t i = 0; i < count; ++i) to[i] = sum(to[i], from[i]);
    }
  });
}

}  // namespace triptych::parallel
