// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/caches.h"

#include <algorithm>
#include <bit>

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kEntryBytes = 32;
constexpr std::size_t kFirstChains = 64;

}  // namespace

SectorCache::SectorCache() : entries_(1), chains_(kFirstChains) {}

void SectorCache::clear() {
  for (std::size_t at = 1; at < entries_.size(); ++at) chain_of(entries_[at].sector) = 0;
  entries_.assign(1, {});
}

void SectorCache::limit(std::size_t bytes) {
  capacity_ = std::max<std::size_t>(1, bytes / kEntryBytes);
  if (entries_.size() - 1 > capacity_) clear();
}

std::uint32_t& SectorCache::chain_of(std::uint64_t sector) {
  const auto hash = sector * 0x9E3779B97F4A7C15U;
  return chains_[hash >> (64 - std::countr_zero(chains_.size()))];
}

std::uint32_t SectorCache::find(std::uint64_t sector) {
  auto at = chain_of(sector);
  while (at != 0 && entries_[at].sector != sector) at = entries_[at].next;
  return at;
}

void SectorCache::put_into_chain(std::uint32_t at) {
  auto& first = chain_of(entries_[at].sector);
  entries_[at].next = first;
  first = at;
}

void SectorCache::take_from_chain(std::uint32_t at) {
  auto* link = &chain_of(entries_[at].sector);
  while (*link != at) link = &entries_[*link].next;
  *link = entries_[at].next;
}

/// A new entry without a sector.
std::uint32_t SectorCache::add() {
  const auto at = static_cast<std::uint32_t>(entries_.size());
  if (entries_.size() > chains_.size()) {
    chains_.assign(2 * chains_.size(), 0);
    for (std::uint32_t i = 1; i < at; ++i) put_into_chain(i);
  }
  entries_.emplace_back();
  return at;
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
  if (const auto found = find(sector); found != 0) {
    if (entries_[0].older == found) return true;
    take_out(found);
    link(found);
    return true;
  }
  std::uint32_t at = 0;
  if (entries_.size() - 1 < capacity_) {
    at = add();
  } else {
    at = entries_[0].newer;  // the oldest
    take_out(at);
    take_from_chain(at);
  }
  entries_[at].sector = sector;
  entries_[at].is_changed = false;
  link(at);
  put_into_chain(at);
  return false;
}

bool SectorCache::change(std::uint64_t sector) {
  Entry& entry = entries_[find(sector)];
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
