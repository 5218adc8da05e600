// The bytes of a simulated DRAM: gigabytes of zeros that cost nothing until they are touched.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace triptych::mmu {

/// Throws std::runtime_error when the address space cannot be had.
class Memory {
 public:
  explicit Memory(std::uint64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace triptych::mmu
