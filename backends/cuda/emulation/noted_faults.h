// Faults after which a kernel continues, as a GPU would: each pair of lines is listed once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/runtime/kernel_fault.h"

namespace triptych::cuda::emulation {

struct NotedFault {
  KernelFault first;
  unsigned other_line = 0;  ///< of the access that it races with. 0: none
  std::uint64_t count = 1;  ///< of the faults of this kind and these lines
};

class NotedFaults {
 public:
  static constexpr std::size_t kMostPlaces = 100;

  void add(const NotedFault& more);
  void add(const NotedFaults& more);
  bool empty() const { return faults_.empty(); }
  const std::vector<NotedFault>& list() const { return faults_; }
  /// The number of faults at places beyond the first kMostPlaces.
  std::uint64_t unlisted() const { return unlisted_; }

 private:
  std::vector<NotedFault> faults_;
  std::uint64_t unlisted_ = 0;
};

}  // namespace triptych::cuda::emulation
