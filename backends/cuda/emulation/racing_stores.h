// Stores of several threads to one place that nothing orders. CUDA leaves the value undefined. A
// GPU keeps that of one of the threads, so the result is the same where all store the same value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::emulation {

/// Bytes of memory.
struct Bytes {
  std::uintptr_t address = 0;
  std::size_t count = 0;
};

/// An access that races with an earlier one.
struct RacingAccess {
  Location where;
  std::string what;
  unsigned other_line = 0;  ///< of the earlier one
  Bytes stores;             ///< not empty: both only store, and this one here
};

/// A place in the source with accesses that CUDA leaves undefined, although GPUs continue.
struct Remark {
  Location where;
  std::uint64_t count = 0;
  std::string first;  ///< the message of the first access
};

/// Adds `more` to the entry of the same place.
void add(std::vector<Remark>& all, const Remark& more);

class RacingStores {
 public:
  static constexpr std::size_t kMostBytes = 16;

  /// A thread is about to store at most kMostBytes, to which others stored.
  void expect(unsigned thread, RacingAccess&& store);
  bool empty() const { return stores_.empty(); }
  /// Compares the places of this thread's stores, which have happened, with their earlier content,
  /// and returns one that has changed its place. A store at `where` may be in progress, in pieces.
  std::optional<RacingAccess> settle(unsigned thread, const Location& where);
  void clear() { stores_.clear(); }

  const std::vector<Remark>& equal() const { return equal_; }

 private:
  struct Store {
    unsigned thread = 0;
    RacingAccess access;
    std::array<std::byte, kMostBytes> before{};
  };

  std::vector<Store> stores_;
  std::vector<Remark> equal_;
};

}  // namespace triptych::cuda::emulation
