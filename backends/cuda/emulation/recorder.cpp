// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/recorder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backends/cuda/emulation/request_watcher.h"

namespace triptych::cuda::emulation {
namespace {

/// Visits of a site that may wait for lanes before it is looked which are complete.
constexpr std::size_t kMostOpen = 8192;
/// Visits by which a lane may be ahead of the others: with more it is counted alone.
constexpr std::size_t kFarAhead = 1U << 18;

thread_local Recorder* current_recorder = nullptr;

/// The lanes of a warp that has so many.
std::uint32_t all_lanes(unsigned count) { return count == kWarp ? ~0U : (1U << count) - 1; }

}  // namespace

Recorder::Recorder(GlobalShadow* global, bool takes_turns)
    : takes_turns_(takes_turns), buckets_(1024) {
  if (global == nullptr) return;
  shadow_ = std::make_unique<SharedShadow>();
  global_ = std::make_unique<GlobalWindow>(*global);
  history_ = std::make_unique<GlobalHistory>();
}

Recorder& Recorder::current() { return *current_recorder; }

void Recorder::begin_block(unsigned threads) {
  current_recorder = this;
  threads_ = threads;
  warps_.resize((threads + kWarp - 1) / kWarp);
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].ended = 0;
    warps_[w].lanes = std::min(kWarp, threads - static_cast<unsigned>(w) * kWarp);
  }
  order_.begin_block(threads);
  if (shadow_) shadow_->begin_block();
}

void Recorder::end_block() {
  ++counters_.blocks;
  counters_.threads += threads_;
  for (auto& warp : warps_) close(warp);
}

void Recorder::thread_ended(unsigned thread) {
  Warp& warp = warps_[thread / kWarp];
  warp.ended |= 1U << thread % kWarp;
  if (warp.ended == all_lanes(warp.lanes)) close(warp);
}

void Recorder::barrier_passed(const Location&) {
  ++counters_.barriers;
  for (auto& warp : warps_) close(warp);
  order_.barrier_passed();
}

void Recorder::warp_met(unsigned warp, std::uint32_t mask, WarpWork work) {
  if (work == WarpWork::Multiply) ++counters_.matrix_products;
  if (work != WarpWork::Exchange) return;  // these order no accesses
  ++counters_.warp_operations;
  if (mask == all_lanes(warps_[warp].lanes) || mask == ~0U) order_.warp_met(warp);
}

std::size_t Recorder::site_of(Space space, Access access, const Location& where) {
  const auto key =
      LocationHash()(where) + static_cast<unsigned>(space) * 4 + static_cast<unsigned>(access);
  for (auto bucket = key % buckets_.size();; bucket = (bucket + 1) % buckets_.size()) {
    if (buckets_[bucket] == 0) {
      sites_.push_back({where, space, access, {}});
      buckets_[bucket] = sites_.size();
      if (2 * sites_.size() > buckets_.size()) {
        // A kernel has some dozens of sites: grow once in a lifetime, by the same search.
        buckets_.assign(2 * buckets_.size(), 0);
        const auto entries = std::move(sites_);
        sites_.clear();
        for (const auto& entry : entries) {
          sites_[site_of(entry.space, entry.access, entry.where)].counters = entry.counters;
        }
      }
      return sites_.size() - 1;
    }
    const SiteEntry& entry = sites_[buckets_[bucket] - 1];
    if (entry.where == where && entry.space == space && entry.access == access) {
      return buckets_[bucket] - 1;
    }
  }
}

template <class Visit, class Count>
Visit& Recorder::visit(Warp& warp, OpenSite<Visit>& site, unsigned lane, const Count& count_first) {
  if (takes_turns_ && site.visits.size() >= kMostOpen && site.done[lane] % kMostOpen == 0) {
    auto first = ~std::uint32_t{0};
    for (auto rest = all_lanes(warp.lanes) & ~warp.ended; rest != 0; rest &= rest - 1) {
      first = std::min(first, site.done[static_cast<unsigned>(std::countr_zero(rest))]);
    }
    auto complete = first > site.counted ? first - site.counted : 0;
    if (site.visits.size() > kFarAhead) complete = std::max(complete, std::uint32_t{kMostOpen});
    complete = std::min(complete, static_cast<std::uint32_t>(site.visits.size()));
    count_first(std::span(site.visits).first(complete));
    site.visits.erase(site.visits.begin(), site.visits.begin() + complete);
    site.counted += complete;
  }
  const auto visit = site.done[lane]++;
  const auto at = visit >= site.counted ? visit - site.counted : 0;
  if (site.visits.size() <= at) site.visits.emplace_back();
  return site.visits[at];
}

void Recorder::access(Space space, Access access, const void* address, unsigned bytes,
                      const Location& where, bool relaxed) {
  Block& block = Block::current();
  const auto thread = block.thread();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  block.step(where, access == Access::Store ? 0 : at);
  if (space == Space::Shared) check(access, address, bytes, where, relaxed);
  if (space == Space::Global && global_) {
    global_->access(access, at, bytes, where, relaxed);
    history_->access(order_, access, at, bytes, where, relaxed);
  }
  const auto site = site_of(space, access, where);
  Warp& warp = warps_[thread / kWarp];
  if (warp.sites.size() <= site) warp.sites.resize(site + 1);
  Request& request =
      visit(warp, warp.sites[site], thread % kWarp,
            [&](std::span<const Request> complete) { count(sites_[site], warp, complete); });
  request.mask |= 1U << thread % kWarp;
  request.bytes = bytes;
  request.addresses[thread % kWarp] = at;
}

void Recorder::fence(const Location& where) {
  Block::current().pass(where);
  if (global_) global_->fence();
}

void Recorder::pass(const Location& where) {
  Block& block = Block::current();
  block.pass(where);
  const auto [found, is_new] = pass_numbers_.try_emplace(where, passes_.size());
  if (is_new) passes_.push_back({where, {}});
  const auto number = found->second;
  const auto thread = block.thread();
  Warp& warp = warps_[thread / kWarp];
  if (warp.passes.size() <= number) warp.passes.resize(number + 1);
  visit(warp, warp.passes[number], thread % kWarp, [&](std::span<const std::uint32_t> complete) {
    count(passes_[number], complete, warp.lanes);
  }) |= 1U << thread % kWarp;
}

void Recorder::read_by_copy(const void* address, std::size_t bytes, const Location& where) {
  if (!global_) return;
  global_->access(Access::Load, reinterpret_cast<std::uintptr_t>(address), bytes, where, false);
}

void Recorder::land(const void* address, unsigned bytes, const Location& where) {
  check(Access::Store, address, bytes, where, false);
}

void Recorder::check(Access access, const void* address, unsigned bytes, const Location& where,
                     bool relaxed) {
  if (!shadow_) return;
  const auto offset = static_cast<const std::byte*>(address) - Block::current().shared().data();
  shadow_->access(order_, access, static_cast<std::size_t>(offset), bytes, where, relaxed);
}

void Recorder::tell(const SiteEntry& entry, const Warp& warp, Request request) const {
  if (entry.space == Space::Shared) {
    const auto begin = reinterpret_cast<std::uintptr_t>(Block::current().shared().data());
    for (auto& address : request.addresses) address -= begin;
  }
  const auto number = static_cast<unsigned>(&warp - warps_.data());
  watcher_->asked({entry.where, entry.space, entry.access, blockIdx, number}, request);
}

void Recorder::count(SiteEntry& entry, const Warp& warp, std::span<const Request> requests) {
  for (const Request& request : requests) {
    if (watcher_ != nullptr) tell(entry, warp, request);
    const auto lanes = static_cast<unsigned>(std::popcount(request.mask));
    entry.counters.lanes += lanes;
    entry.counters.useful_bytes += std::uint64_t{lanes} * request.bytes;
    if (entry.space == Space::Global) {
      entry.counters.sectors += count_sectors(request);
      entry.counters.distinct_bytes += count_distinct_bytes(request);
    }
    if (entry.space == Space::Shared) {
      entry.counters.wavefronts += count_wavefronts(request, entry.access);
    }
  }
  entry.counters.requests += requests.size();
}

void Recorder::count(PassEntry& entry, std::span<const std::uint32_t> masks, unsigned lanes) {
  for (const auto mask : masks) {
    entry.counters.lanes += static_cast<unsigned>(std::popcount(mask));
    entry.counters.divergent += mask == all_lanes(lanes) ? 0 : 1;
  }
  entry.counters.warps += masks.size();
}

void Recorder::close(Warp& warp) {
  const auto close_all = [](auto& sites, const auto& count_visits) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
      auto& site = sites[i];
      if (site.visits.empty() && site.counted == 0) continue;
      count_visits(i, site.visits);
      site.visits.clear();
      site.counted = 0;
      site.done.fill(0);
    }
  };
  close_all(warp.sites, [&](std::size_t i, const auto& visits) { count(sites_[i], warp, visits); });
  close_all(warp.passes,
            [&](std::size_t i, const auto& visits) { count(passes_[i], visits, warp.lanes); });
}

KernelCounters Recorder::take() {
  if (history_) history_->clear();
  for (auto& entry : sites_) {
    if (entry.counters.requests == 0) continue;
    const Location& where = entry.where;
    const AccessSite site = {file_of(where), where.line(), where.column(),
                             where.part(),   entry.space,  entry.access};
    counters_.sites[site] += std::exchange(entry.counters, {});
  }
  for (auto& entry : passes_) {
    if (entry.counters.warps == 0) continue;
    const Location& where = entry.where;
    counters_.passes[{file_of(where), where.line(), where.column(), where.part()}] =
        std::exchange(entry.counters, {});
  }
  return std::exchange(counters_, {});
}

}  // namespace triptych::cuda::emulation
