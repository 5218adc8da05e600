// The memories of a kernel, and the addresses under which it sees them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace triptych::ptx {

/// Generic addresses: those of global memory are this process's own, the others lie in windows.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 48;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{2} << 48;
inline constexpr std::uint64_t kParameterWindow = std::uint64_t{3} << 48;
inline constexpr std::uint64_t kWindows = ~((std::uint64_t{1} << 48) - 1);

/// The first kibibyte of shared memory is the system's, as on compute capability 9.0.
inline constexpr std::uint64_t kSharedStart = 1024;
/// Stands for the address of shared memory that the launch sizes.
inline constexpr std::uint64_t kDynamicShared = ~std::uint64_t{0};

/// Allocations on the device.
class GlobalMemory {
 public:
  void add(const void* begin, std::size_t bytes);
  void remove(const void* begin);
  /// True when all of it is in one allocation.
  bool holds(std::uint64_t address, std::size_t bytes) {
    if (address - last_begin_ < last_bytes_ && bytes <= last_bytes_ - (address - last_begin_)) {
      return true;
    }
    return find(address, bytes);
  }
  /// Words for an address that is in none.
  std::string describe(std::uint64_t address) const;

 private:
  bool find(std::uint64_t address, std::size_t bytes);

  std::map<std::uint64_t, std::size_t> allocations_;
  std::uint64_t last_begin_ = 0;
  std::size_t last_bytes_ = 0;
};

}  // namespace triptych::ptx
