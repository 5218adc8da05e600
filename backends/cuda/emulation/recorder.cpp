// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/recorder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "backends/cuda/emulation/access_order.h"
#include "backends/cuda/emulation/global_history.h"
#include "backends/cuda/emulation/global_shadow.h"
#include "backends/cuda/emulation/lockstep.h"
#include "backends/cuda/emulation/request_watcher.h"
#include "backends/cuda/emulation/shared_shadow.h"

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kKnownPieces = 1024;
constexpr unsigned kWordBytes = 4;

/// The lower bits of a piece's key are the depth of its frame, in words.
constexpr std::uint64_t kDepthMask = (std::uint64_t{1} << 15) - 1;

/// The lanes of a warp that has so many.
std::uint32_t all_lanes(unsigned count) { return count == kWarp ? ~0U : (1U << count) - 1; }

}  // namespace

constinit thread_local Recorder* current_recorder = nullptr;

struct Recorder::Warp {
  Lockstep lockstep;
  unsigned lanes = 0;
};

/// Counts the requests of a warp.
class Recorder::Counting : public IssueObserver {
 public:
  Counting(Recorder& recorder, unsigned warp) : recorder_(recorder), warp_(warp) {}

  void requested(std::uint32_t site, const Request& request) override {
    recorder_.count(site, warp_, request);
  }
  void passed(std::uint32_t pass, std::uint32_t mask) override {
    auto& [code, counters] = recorder_.passes_[pass];
    ++counters.warps;
    counters.lanes += static_cast<unsigned>(std::popcount(mask));
    counters.divergent += mask == all_lanes(recorder_.warps_[warp_]->lanes) ? 0 : 1;
    if (recorder_.watcher_ == nullptr) return;
    recorder_.watcher_->passed({code, blockIdx, warp_, pass}, mask);
  }
  void parted(std::uint32_t pass) override {
    if (recorder_.watcher_ == nullptr) return;
    recorder_.watcher_->parted({recorder_.passes_[pass].code, blockIdx, warp_, pass});
  }

 private:
  Recorder& recorder_;
  unsigned warp_;
};

Recorder::Recorder(GlobalShadow* global, bool counts)
    : counts_(counts),
      buckets_(1024),
      code_table_(256),
      known_pieces_(kKnownPieces),
      order_(std::make_unique<AccessOrder>()) {
  if (global == nullptr) return;
  shadow_ = std::make_unique<SharedShadow>();
  global_ = std::make_unique<GlobalWindow>(*global);
  history_ = std::make_unique<GlobalHistory>();
}

Recorder::~Recorder() = default;

void Recorder::begin_block(unsigned threads) {
  current_recorder = this;
  threads_ = threads;
  const auto count = (threads + kWarp - 1) / kWarp;
  while (warps_.size() < count) warps_.push_back(std::make_unique<Warp>());
  for (unsigned w = 0; w < count; ++w) {
    warps_[w]->lanes = std::min(kWarp, threads - w * kWarp);
    warps_[w]->lockstep.begin(all_lanes(warps_[w]->lanes));
  }
  order_->begin_block(threads);
  if (global_) global_->begin_block();
  if (shadow_) shadow_->begin_block();
}

void Recorder::end_block() {
  ++counters_.blocks;
  counters_.threads += threads_;
}

void Recorder::thread_ended(unsigned thread) {
  auto& lockstep = warps_[thread / kWarp]->lockstep;
  lockstep.end(thread % kWarp);
  if (lockstep.running() == 0) close(thread / kWarp);
}

/// Issues the instructions up to the fault, for who looks on.
void Recorder::failed() {
  if (watcher_ == nullptr) return;
  for (unsigned warp = 0; warp * kWarp < threads_; ++warp) close(warp);
}

void Recorder::barrier_passed(const Location&) {
  ++counters_.barriers;
  for (unsigned warp = 0; warp * kWarp < threads_; ++warp) close(warp);
  order_->barrier_passed();
}

void Recorder::warp_met(unsigned warp, std::uint32_t mask, WarpWork work) {
  if (work == WarpWork::Multiply) ++counters_.matrix_products;
  if (work == WarpWork::Exchange || work == WarpWork::Synchronise) ++counters_.warp_operations;
  if (work == WarpWork::Synchronise) order_->warp_synchronised(warp, mask);
  if (!counts_) return;
  Counting counting(*this, warp);
  warps_[warp]->lockstep.meet(mask, counting);
}

KnownCode& Recorder::add_code(const PieceCode& code) {
  const auto put = [&](KnownCode& entry) {
    const auto last = code_table_.size() - 1;
    auto place = hash_of(entry.code.pc) & last;
    while (code_table_[place] != nullptr) place = (place + 1) & last;
    code_table_[place] = &entry;
  };
  if (2 * codes_.size() >= code_table_.size()) {
    code_table_.assign(2 * code_table_.size(), nullptr);
    std::ranges::for_each(codes_, put);
  }
  codes_.push_back({.code = code, .site = {}});
  put(codes_.back());
  return codes_.back();
}

std::uint32_t Recorder::site_of(Space space, Access access, const Location& where) {
  const auto key =
      LocationHash()(where) + static_cast<unsigned>(space) * 4 + static_cast<unsigned>(access);
  const auto last = buckets_.size() - 1;  // their number is a power of two
  for (auto bucket = key & last;; bucket = (bucket + 1) & last) {
    if (buckets_[bucket] == 0) {
      sites_.push_back({where, space, access, {}});
      buckets_[bucket] = static_cast<std::uint32_t>(sites_.size());
      if (2 * sites_.size() > buckets_.size()) {
        // A kernel has some dozens of sites: grow once in a lifetime, by the same search.
        buckets_.assign(2 * buckets_.size(), 0);
        const auto entries = std::move(sites_);
        sites_.clear();
        for (const auto& entry : entries) {
          sites_[site_of(entry.space, entry.access, entry.where)].counters = entry.counters;
        }
      }
      return static_cast<std::uint32_t>(sites_.size() - 1);
    }
    const SiteEntry& entry = sites_[buckets_[bucket] - 1];
    if (entry.where == where && entry.space == space && entry.access == access) {
      return buckets_[bucket] - 1;
    }
  }
}

/// Not inline: a copy in a counted kernel would report a piece of code.
void Recorder::access(Space space, const Manner& manner, const void* address, unsigned bytes,
                      const Location& where) {
  KnownSite site;
  access(space, manner, address, bytes, where, site);
}

void Recorder::access(Space space, const Manner& manner, const void* address, unsigned bytes,
                      const Location& where, KnownSite& site) {
  const OutsideKernel outside;
  Block& block = Block::current();
  const auto thread = block.thread();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  block.step(where, manner.access == Access::Store ? 0 : at);
  if (shadow_) watch(space, manner, address, bytes, where);
  if (!counts_) return;
  if (watcher_ != nullptr && manner.access != Access::Load) watcher_->writes(address, bytes);
  if (site.number >= sites_.size() || site.space != space || site.access != manner.access) {
    site = {site_of(space, manner.access, where), space, manner.access};
  }
  warps_[thread / kWarp]->lockstep.access(thread % kWarp, site.number, at, bytes);
}

void Recorder::written(Space space, const void* address, unsigned bytes, const Location& where) {
  watch(space, {Access::Atomic, Strength::Atomic, true}, address, bytes, where);
}

/// Looks for faults.
void Recorder::watch(Space space, const Manner& manner, const void* address, unsigned bytes,
                     const Location& where) {
  if (space == Space::Constant) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const bool relaxed = manner.strength != Strength::Plain;
  if (bytes == kWordBytes && at % kWordBytes == 0 && !relaxed) {
    const Block& block = Block::current();
    const auto now = order_->now(block.thread(), where.line(), manner);
    const auto offset = at - reinterpret_cast<std::uintptr_t>(block.shared().data());
    const bool is_noted = space == Space::Global
                              ? global_->note_at_once(manner.access, at, where.line()) &&
                                    history_->note_at_once(*order_, at, now)
                              : offset % kWordBytes == 0 &&
                                    offset + kWordBytes <= block.shared().size() &&
                                    shadow_->note_at_once(*order_, manner.access, offset, now);
    if (is_noted) return;
  }
  if (space == Space::Shared) check(manner, address, bytes, where);
  if (space == Space::Global) {
    global_->access(manner.access, at, bytes, where, relaxed);
    history_->access(*order_, manner, at, bytes, where);
  }
  if (!relaxed) return;
  order_->relaxed_access(Block::current().thread(), at, manner.access != Access::Store,
                         manner.writes);
}

void Recorder::fence(const Location& where, bool for_all_blocks) {
  const OutsideKernel outside;
  Block::current().pass(where);
  order_->fence(Block::current().thread());
  if (global_ && for_all_blocks) global_->fence();
}

std::uint64_t piece_of_code(const void* pc, const void* frame, const void* caller) {
  const auto depth = Block::current().depth_of(frame);
  const auto at = (reinterpret_cast<std::uintptr_t>(caller) ^ depth << 48) * 0xBF58476D1CE4E5B9U;
  const auto hash = (reinterpret_cast<std::uintptr_t>(pc) ^ at) * 0x9E3779B97F4A7C15U;
  return (hash & ~kDepthMask) | (depth / sizeof(void*) & kDepthMask);
}

/// The entry of the piece. Its node is new where it was never seen.
Recorder::Piece& Recorder::piece_of(std::uint64_t key) {
  Piece& known = known_pieces_[key >> 54];
  if (known.key == key && known.node != 0) return known;
  const auto [found, is_new] = pieces_.try_emplace(key);
  if (is_new) {
    found->second.key = key;
    found->second.node = ControlFlow::kFirst + static_cast<std::uint32_t>(pieces_.size()) - 1;
  }
  known = found->second;
  return known;
}

void Recorder::begin_piece(const Piece& piece, const PieceOrigin& origin) {
  const auto thread = Block::current().thread();
  const auto depth = static_cast<std::uint32_t>(piece.key & kDepthMask);
  auto& lockstep = warps_[thread / kWarp]->lockstep;
  lockstep.pass(thread % kWarp, piece.node, piece.pass, depth, origin);
  if (lockstep.is_long(thread % kWarp)) advance(thread);
}

void Recorder::pass(std::uint64_t piece) {
  const OutsideKernel outside;
  begin_piece(piece_of(piece), {});
}

bool Recorder::follow(const void* pc, const void* frame, const void* caller) {
  Block& block = Block::current();
  const auto thread = block.thread(), lane = thread % kWarp;
  auto& lockstep = warps_.data()[thread / kWarp]->lockstep;
  const auto* expected = lockstep.expected(lane, pc, caller, block.depth_of(frame));
  if (expected == nullptr || !block.pass_at_once(expected->where)) return false;
  lockstep.begin_expected(lane);
  return true;
}

void Recorder::pass(std::uint64_t piece, const PieceCode& code, const PieceOrigin& origin) {
  Block::current().pass(code.where);
  if (!counts_) return;
  Piece& known = piece_of(piece);
  if (known.pass == Lockstep::kNoPass) {
    const auto number = static_cast<std::uint32_t>(passes_.size());
    const auto [found, is_new] = pass_numbers_.try_emplace(code.pc, number);
    if (is_new) passes_.push_back({code, {}});
    known.pass = pieces_[piece].pass = found->second;
  }
  begin_piece(known, origin);
}

void Recorder::begin_line(const LineBegin& line, const Location& where) {
  if (watcher_ == nullptr || !watcher_->begins_line(line)) return;
  pass(piece_of_code(line.pc, line.frame, line.caller), {line.pc, where, false}, {});
}

void Recorder::advance(unsigned thread) {
  Counting counting(*this, thread / kWarp);
  warps_[thread / kWarp]->lockstep.advance(counting);
}

void Recorder::close(unsigned warp) {
  if (!counts_) return;
  Counting counting(*this, warp);
  warps_[warp]->lockstep.close(counting);
}

void Recorder::read_by_copy(const void* address, std::size_t bytes, const Location& where) {
  const OutsideKernel outside;
  if (!global_) return;
  global_->access(Access::Load, reinterpret_cast<std::uintptr_t>(address), bytes, where, false);
}

void Recorder::land(const void* address, unsigned bytes, const Location& where) {
  const OutsideKernel outside;
  check(plain(Access::Store), address, bytes, where);
}

void Recorder::begin_copy(const void* address, unsigned bytes, const Location& where) {
  const OutsideKernel outside;
  if (!shadow_) return;
  const auto shared = Block::current().shared();
  const auto offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(shared.data());
  // The store itself reports an address outside.
  if (offset < shared.size() && bytes <= shared.size() - offset) {
    shadow_->begin_copy(*order_, offset, bytes, where);
  }
}

void Recorder::check(const Manner& manner, const void* address, unsigned bytes,
                     const Location& where) {
  if (!shadow_) return;
  const auto offset = static_cast<const std::byte*>(address) - Block::current().shared().data();
  shadow_->access(*order_, manner, static_cast<std::size_t>(offset), bytes, where);
}

void Recorder::tell(std::uint32_t site, unsigned warp, Request request) const {
  const SiteEntry& entry = sites_[site];
  if (entry.space == Space::Shared) {
    const auto begin = reinterpret_cast<std::uintptr_t>(Block::current().shared().data());
    for (auto& address : request.addresses) address -= begin;
  }
  watcher_->asked({entry.where, entry.space, entry.access, blockIdx, warp, site}, request);
}

void Recorder::count(std::uint32_t site, unsigned warp, const Request& request) {
  if (watcher_ != nullptr) tell(site, warp, request);
  SiteEntry& entry = sites_[site];
  const auto lanes = static_cast<unsigned>(std::popcount(request.mask));
  ++entry.counters.requests;
  entry.counters.lanes += lanes;
  entry.counters.useful_bytes += std::uint64_t{lanes} * request.bytes;
  if (entry.space == Space::Global) {
    entry.counters.sectors += count_sectors(request);
    entry.counters.distinct_bytes += count_distinct_bytes(request);
  }
  if (entry.space == Space::Shared) {
    entry.counters.wavefronts += count_wavefronts(request, entry.access);
  }
  if (entry.space == Space::Constant) entry.counters.wavefronts += count_addresses(request);
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
  for (auto& [code, counters] : passes_) {
    const auto at = std::exchange(counters, {});
    if (at.warps == 0 || !code.is_own) continue;
    const Location& where = code.where;
    auto& sum = counters_.passes[{file_of(where), where.line(), where.column(), where.part()}];
    sum.warps += at.warps;
    sum.lanes += at.lanes;
    sum.divergent += at.divergent;
  }
  return std::exchange(counters_, {});
}

}  // namespace triptych::cuda::emulation
