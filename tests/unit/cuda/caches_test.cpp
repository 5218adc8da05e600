// The model of a GPU's caches against lists of sectors in the order of their use.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kSectorBytes = 32;

struct Sector {
  std::uint64_t number = 0;
  bool is_changed = false;
};

/// The sectors, the least recently used one first.
class SectorList {
 public:
  explicit SectorList(std::size_t capacity) : capacity_(capacity) {}

  bool use(std::uint64_t number) {
    const auto found = std::ranges::find(sectors_, number, &Sector::number);
    const bool was_there = found != sectors_.end();
    const bool is_changed = was_there && found->is_changed;
    if (was_there) sectors_.erase(found);
    if (sectors_.size() == capacity_) sectors_.pop_front();
    sectors_.push_back({number, is_changed});
    return was_there;
  }
  bool change() { return !std::exchange(sectors_.back().is_changed, true); }
  void clear() { sectors_.clear(); }

 private:
  std::size_t capacity_;
  std::list<Sector> sectors_;
};

TEST(SectorCache, replaces_the_least_recently_used_sector) {
  std::mt19937 random(43);
  for (const std::size_t capacity : {1, 2, 50, 300}) {
    SectorCache cache;
    SectorList expected(capacity);
    cache.limit(capacity * kSectorBytes);
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t sector = random() % (capacity + capacity / 2 + 2) << (random() % 2 * 40);
      ASSERT_EQ(cache.use(sector), expected.use(sector)) << capacity << " " << i;
      if (random() % 4 == 0) {
        ASSERT_EQ(cache.change(sector), expected.change());
      }
      if (random() % 4000 > 0) continue;
      cache.clear();
      expected.clear();
    }
  }
}

TEST(SectorCache, begins_again_when_it_holds_more_than_its_limit) {
  SectorCache cache;
  cache.limit(4 * kSectorBytes);
  for (std::uint64_t sector = 0; sector < 4; ++sector) EXPECT_FALSE(cache.use(sector));
  cache.limit(5 * kSectorBytes);
  EXPECT_TRUE(cache.use(3));
  cache.limit(3 * kSectorBytes);
  EXPECT_FALSE(cache.use(3));
  EXPECT_FALSE(cache.use(0));
}

}  // namespace
}  // namespace triptych::cuda::emulation
