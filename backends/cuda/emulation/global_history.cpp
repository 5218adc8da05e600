// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/global_history.h"

#include <string>
#include <utility>

#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/page_pool.h"

namespace triptych::cuda::emulation {

void GlobalHistory::Page::refine(AccessOrder& order) {
  if (!bytes.empty()) return;
  bytes.resize(kPageBytes);
  for (std::size_t i = 0; i < kPageBytes; ++i) bytes[i] = order.copy(words[i / kWordBytes]);
}

GlobalHistory::Page& GlobalHistory::page_of(std::uintptr_t address) {
  const auto number = address / kPageBytes;
  Known& known = known_[number % known_.size()];
  if (known.page != nullptr && known.number == number) return *known.page;
  auto& page = pages_[number];
  if (page == nullptr) page = PagePool<Page>::common().take();
  known = {number, page.get()};
  return *page;
}

void GlobalHistory::clear() {
  for (auto& [number, page] : pages_) PagePool<Page>::common().give(std::move(page));
  pages_.clear();
  known_ = {};
}

void GlobalHistory::access(AccessOrder& order, const Manner& manner, std::uintptr_t address,
                           std::uintptr_t bytes, const Location& where) {
  Block& block = Block::current();
  const auto thread = block.thread();
  const auto now = order.now(thread, where.line(), manner);
  const bool whole = address % kWordBytes == 0 && bytes % kWordBytes == 0;
  const auto report = [&](std::uintptr_t at, const AccessOrder::Entry& other) {
    std::string what;
    what = "another thread of the block " +
           order.describe(other, thread, now, block.describe(at, "this place of global memory"));
    const bool only_stores = AccessOrder::is_plain_store(other) && AccessOrder::is_plain_store(now);
    block.race({where, std::move(what), other.line, {address, only_stores ? bytes : 0}});
  };
  for (auto at = address; at < address + bytes;) {
    Page& page = page_of(at);
    if (!whole) page.refine(order);
    const bool of_words = page.bytes.empty();
    AccessOrder::Cell& cell =
        of_words ? page.words[at % kPageBytes / kWordBytes] : page.bytes[at % kPageBytes];
    if (const auto* other = order.access(cell, thread, now); other != nullptr) report(at, *other);
    at += of_words ? kWordBytes : 1;
  }
}

}  // namespace triptych::cuda::emulation
