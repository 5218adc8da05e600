// History of global memory within one block, as shared_shadow.h has it of shared memory: who of
// the block's threads wrote and read each word since when. Blocks have global_shadow.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulation/access_order.h"
#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::emulation {

class GlobalHistory {
 public:
  /// Reports races to the running block.
  void access(AccessOrder& order, const Manner& manner, std::uintptr_t address,
              std::uintptr_t bytes, const Location& where);
  /// Forgets the meanings of addresses.
  void clear();

 private:
  static constexpr std::uintptr_t kPageBytes = 4096, kWordBytes = 4;
  /// Cells of words, or of bytes once a part of a word was accessed by itself.
  struct Page {
    std::uintptr_t granule = kWordBytes;
    std::vector<AccessOrder::Cell> cells{kPageBytes / kWordBytes};
    void refine(AccessOrder& order);
  };
  struct Known {
    std::uintptr_t number = 0;
    Page* page = nullptr;
  };
  Page& page_of(std::uintptr_t address);

  std::unordered_map<std::uintptr_t, Page> pages_;
  std::array<Known, 64> known_{};
};

}  // namespace triptych::cuda::emulation
