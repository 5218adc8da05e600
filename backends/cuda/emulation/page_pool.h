// Pages of a history that wait for the next launch. A new page costs more than all accesses to its
// words: the system maps and clears its memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace triptych::cuda::emulation {

/// Threads may call its functions at the same time.
template <class Page>
class PagePool {
 public:
  /// The pool of the process.
  static PagePool& common() {
    static PagePool pool;
    return pool;
  }

  /// A page in its first state.
  std::unique_ptr<Page> take() {
    std::unique_ptr<Page> page;
    {
      const std::lock_guard lock(mutex_);
      if (!pages_.empty()) {
        page = std::move(pages_.back());
        pages_.pop_back();
      }
    }
    if (page == nullptr) return std::make_unique<Page>();
    std::destroy_at(page.get());
    std::construct_at(page.get());
    return page;
  }
  void give(std::unique_ptr<Page> page) {
    const std::lock_guard lock(mutex_);
    if (pages_.size() < kMostBytes / sizeof(Page)) pages_.push_back(std::move(page));
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace triptych::cuda::emulation
