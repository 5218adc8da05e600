// History of global memory within one block, as shared_shadow.h has it of shared memory: who of
// the block's threads wrote and read each word since when. Blocks have global_shadow.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulation/access_order.h"
#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::emulation {

class GlobalHistory {
 public:
  GlobalHistory() = default;
  ~GlobalHistory() { clear(); }
  GlobalHistory(const GlobalHistory&) = delete;
  GlobalHistory& operator=(const GlobalHistory&) = delete;

  /// Notes an access to a whole word where it is clear at once that it races with none.
  bool note_at_once(AccessOrder& order, std::uintptr_t address, const AccessOrder::Entry& now) {
    const auto number = address / kPageBytes;
    const Known& known = known_[number % kKnown];
    if (known.number != number || known.page == nullptr || !known.page->bytes.empty()) return false;
    return order.note_at_once(known.page->words[address % kPageBytes / kWordBytes], now);
  }
  /// Reports races to the running block.
  void access(AccessOrder& order, const Manner& manner, std::uintptr_t address,
              std::uintptr_t bytes, const Location& where);
  /// Forgets the meanings of addresses.
  void clear();

 private:
  static constexpr std::uintptr_t kPageBytes = 4096, kWordBytes = 4;
  /// Cells of words, or of bytes once a part of a word was accessed by itself.
  struct Page {
    std::array<AccessOrder::Cell, kPageBytes / kWordBytes> words{};
    std::vector<AccessOrder::Cell> bytes;
    void refine(AccessOrder& order);
  };
  struct Known {
    std::uintptr_t number = 0;
    Page* page = nullptr;
  };
  Page& page_of(std::uintptr_t address);

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  static constexpr std::size_t kKnown = 64;

  std::array<Known, kKnown> known_{};
};

}  // namespace triptych::cuda::emulation
