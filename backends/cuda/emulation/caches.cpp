// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/caches.h"

#include <algorithm>

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kEntryBytes = 32;

}  // namespace

void SectorCache::clear() {
  entries_.assign(1, {});
  places_.clear();
}

void SectorCache::limit(std::size_t bytes) {
  capacity_ = std::max<std::size_t>(1, bytes / kEntryBytes);
  if (places_.size() > capacity_) clear();
}

void SectorCache::take_out(std::uint32_t at) {
  const Entry& entry = entries_[at];
  entries_[entry.older].newer = entry.newer;
  entries_[entry.newer].older = entry.older;
}

/// As the newest.
void SectorCache::link(std::uint32_t at) {
  Entry& entry = entries_[at];
  entry.newer = 0;
  entry.older = entries_[0].older;
  entries_[entry.older].newer = at;
  entries_[0].older = at;
}

bool SectorCache::use(std::uint64_t sector) {
  if (const auto found = places_.find(sector); found != places_.end()) {
    if (entries_[0].older == found->second) return true;
    take_out(found->second);
    link(found->second);
    return true;
  }
  auto at = static_cast<std::uint32_t>(entries_.size());
  if (places_.size() < capacity_) {
    entries_.emplace_back();
  } else {
    at = entries_[0].newer;  // the oldest
    take_out(at);
    places_.erase(entries_[at].sector);
  }
  entries_[at].sector = sector;
  entries_[at].is_changed = false;
  link(at);
  places_.emplace(sector, at);
  return false;
}

bool SectorCache::change(std::uint64_t sector) {
  Entry& entry = entries_[places_.at(sector)];
  const bool is_new = !entry.is_changed;
  entry.is_changed = true;
  return is_new;
}

void SharedCache::count(const Request& request, Access access, SectorCache& l1, SiteCosts& costs) {
  std::array<std::uint64_t, 64> sectors;
  const auto number = list_sectors(request, sectors);
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; i < number; ++i) {
    if (access == Access::Load && l1.use(sectors[i])) continue;
    ++costs.l2_sectors;
    const bool was_there = l2_.use(sectors[i]);
    // A store fills its part of a sector without reading the rest.
    if (access != Access::Store && !was_there) ++costs.memory_sectors;
    if (access != Access::Load && l2_.change(sectors[i])) ++costs.memory_sectors;
  }
}

}  // namespace triptych::cuda::emulation
