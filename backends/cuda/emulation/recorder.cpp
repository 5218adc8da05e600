// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/recorder.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace triptych::cuda::emulation {
namespace {

thread_local Recorder* current_recorder = nullptr;

}  // namespace

Recorder::Recorder(GlobalShadow* global) : buckets_(1024) {
  if (global == nullptr) return;
  shadow_ = std::make_unique<SharedShadow>();
  global_ = std::make_unique<GlobalWindow>(*global);
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
  if (shadow_) shadow_->begin_block(threads);
}

void Recorder::end_block() {
  ++counters_.blocks;
  counters_.threads += threads_;
  for (auto& warp : warps_) close(warp);
}

void Recorder::thread_ended(unsigned thread) {
  Warp& warp = warps_[thread / kWarp];
  if (++warp.ended == warp.lanes) close(warp);
}

void Recorder::barrier_passed(const Location&) {
  ++counters_.barriers;
  for (auto& warp : warps_) close(warp);
  if (shadow_) shadow_->barrier_passed();
}

void Recorder::warp_met(unsigned warp, std::uint32_t mask, WarpWork work) {
  if (work == WarpWork::Multiply) ++counters_.matrix_products;
  if (work != WarpWork::Exchange) return;  // these order no accesses
  ++counters_.warp_operations;
  if (shadow_ && mask == ~0U) shadow_->warp_met(warp);
}

std::size_t Recorder::site_of(Space space, Access access, const Location& where) {
  const auto key = where.line() * 2654435761U + where.column() * 40503U +
                   static_cast<unsigned>(space) * 2 + static_cast<unsigned>(access);
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
    if (entry.where.line() == where.line() && entry.where.column() == where.column() &&
        entry.space == space && entry.access == access &&
        entry.where.file_name() == where.file_name()) {
      return buckets_[bucket] - 1;
    }
  }
}

void Recorder::access(Space space, Access access, const void* address, unsigned bytes,
                      const Location& where) {
  Block& block = Block::current();
  const auto thread = block.thread();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  block.step(where, access == Access::Load ? at : 0);
  if (space == Space::Shared) check(access, address, bytes, where);
  if (space == Space::Global && global_) global_->access(access, at, bytes, where);
  const auto site = site_of(space, access, where);
  auto& open = warps_[thread / kWarp].sites;
  if (open.size() <= site) open.resize(site + 1);
  const auto lane = thread % kWarp;
  const auto occurrence = open[site].done[lane]++;
  auto& requests = open[site].requests;
  if (requests.size() <= occurrence) requests.emplace_back();
  Request& request = requests[occurrence];
  request.mask |= 1U << lane;
  request.bytes = bytes;
  request.addresses[lane] = at;
}

void Recorder::read_by_copy(const void* address, std::size_t bytes, const Location& where) {
  if (!global_) return;
  global_->access(Access::Load, reinterpret_cast<std::uintptr_t>(address), bytes, where);
}

void Recorder::land(const void* address, unsigned bytes, const Location& where) {
  check(Access::Store, address, bytes, where);
}

void Recorder::check(Access access, const void* address, unsigned bytes, const Location& where) {
  if (!shadow_) return;
  const auto offset = static_cast<const std::byte*>(address) - Block::current().shared().data();
  shadow_->access(access, static_cast<std::size_t>(offset), bytes, where);
}

void Recorder::close(Warp& warp) {
  for (std::size_t site = 0; site < warp.sites.size(); ++site) {
    auto& open = warp.sites[site];
    if (open.requests.empty()) continue;
    auto& entry = sites_[site];
    for (const Request& request : open.requests) {
      const auto lanes = static_cast<unsigned>(std::popcount(request.mask));
      entry.counters.lanes += lanes;
      entry.counters.useful_bytes += std::uint64_t{lanes} * request.bytes;
      if (entry.space == Space::Global) {
        entry.counters.sectors += count_sectors(request);
        entry.counters.distinct_bytes += count_distinct_bytes(request);
      }
      if (entry.space == Space::Shared) entry.counters.wavefronts += count_wavefronts(request);
    }
    entry.counters.requests += open.requests.size();
    open.requests.clear();
    open.done.fill(0);
  }
}

KernelCounters Recorder::take() {
  for (auto& entry : sites_) {
    if (entry.counters.requests == 0) continue;
    const AccessSite site = {file_of(entry.where), entry.where.line(), entry.where.column(),
                             entry.space, entry.access};
    counters_.sites[site] += std::exchange(entry.counters, {});
  }
  return std::exchange(counters_, {});
}

}  // namespace triptych::cuda::emulation
