// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/sum.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "core/base/error.h"
#include "parallel/comm/sum_element.h"

namespace triptych::parallel {
namespace {

[[noreturn]] void refuse_booleans() {
  throw InvalidArgument("booleans have no sum; cast them to i32 before they are reduced");
}

}  // namespace

void add_to(std::span<std::byte> target, std::span<const std::byte> source, DType dtype) {
  TRIPTYCH_ASSERT(target.size() == source.size());
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      refuse_booleans();
    } else {
      auto* to = reinterpret_cast<T*>(target.data());
      const auto* from = reinterpret_cast<const T*>(source.data());
      const std::size_t count = target.size() / sizeof(T);
      for (std::size_t i = 0; i < count; ++i) to[i] = sum_of(to[i], from[i]);
    }
  });
}

void sum_everywhere(std::span<std::byte* const> buffers, std::size_t first, std::size_t count,
                    DType dtype) {
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      refuse_booleans();
    } else {
      // A block of sums stays in the first-level cache while the buffers pass by.
      constexpr std::size_t block = 1024;
      std::array<T, block> sums;
      for (std::size_t done = 0; done < count; done += block) {
        const auto here = std::min(block, count - done);
        const auto at = [&](std::size_t i) {
          return reinterpret_cast<T*>(buffers[i]) + first + done;
        };
        if (buffers.size() == 2) {
          T* const __restrict a = at(0);
          T* const __restrict b = at(1);
          for (std::size_t i = 0; i < here; ++i) a[i] = b[i] = sum_of(a[i], b[i]);
          continue;
        }
        std::copy_n(at(0), here, sums.begin());
        for (std::size_t k = 1; k < buffers.size(); ++k) {
          const T* from = at(k);
          for (std::size_t i = 0; i < here; ++i) sums[i] = sum_of(sums[i], from[i]);
        }
        for (std::size_t k = 0; k < buffers.size(); ++k) std::copy_n(sums.begin(), here, at(k));
      }
    }
  });
}

}  // namespace triptych::parallel
