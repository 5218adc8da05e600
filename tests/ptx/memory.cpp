// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/memory.h"

#include <fmt/format.h>

#include <iterator>

namespace triptych::ptx {

void GlobalMemory::add(const void* begin, std::size_t bytes) {
  allocations_[reinterpret_cast<std::uint64_t>(begin)] = bytes;
}

void GlobalMemory::remove(const void* begin) {
  allocations_.erase(reinterpret_cast<std::uint64_t>(begin));
  last_bytes_ = 0;
}

bool GlobalMemory::find(std::uint64_t address, std::size_t bytes) {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return false;
  const auto [begin, size] = *std::prev(after);
  if (address - begin >= size || bytes > size - (address - begin)) return false;
  last_begin_ = begin;
  last_bytes_ = size;
  return true;
}

std::string GlobalMemory::describe(std::uint64_t address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return fmt::format("{:#x}, below all allocations", address);
  const auto [begin, size] = *std::prev(after);
  return fmt::format("{:#x}, {} bytes behind the start of an allocation of {}", address,
                     address - begin, size);
}

}  // namespace triptych::ptx
