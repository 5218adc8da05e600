// Looks on while a block runs: counts its requests, and checks every access.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulation/access_order.h"
#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/global_history.h"
#include "backends/cuda/emulation/global_shadow.h"
#include "backends/cuda/emulation/shared_shadow.h"

namespace triptych::cuda::emulation {

class RequestWatcher;

class Recorder : public BlockObserver {
 public:
  /// Checks accesses where there is a shadow of global memory. With `takes_turns` lanes of a warp
  /// stay near each other (Schedule::turn), and requests that they have passed are counted at once.
  explicit Recorder(GlobalShadow* global, bool takes_turns = false);

  /// Tells `watcher` of every request from now on; nullptr: of none.
  void tell(RequestWatcher* watcher) { watcher_ = watcher; }

  /// The recorder of the thread that runs now.
  static Recorder& current();

  void access(Space space, Access access, const void* address, unsigned bytes,
              const Location& where, bool relaxed = false);
  /// The running thread fences global memory.
  void fence(const Location& where);
  /// The running thread passes a place at which its warp may have parted.
  void pass(const Location& where);
  /// A store to shared memory that was counted when it was asked for, and happens now.
  void land(const void* address, unsigned bytes, const Location& where);

  /// Products on the tensor cores in units of 16 x 8 x 16, and bytes that the copy engine reads.
  void multiplied(std::uint64_t products) { counters_.matrix_products += products; }
  void bulk_copied(std::uint64_t bytes) { counters_.bulk_bytes += bytes; }
  /// The copy engine reads global memory for the running thread.
  void read_by_copy(const void* address, std::size_t bytes, const Location& where);

  void begin_block(unsigned threads) override;
  void end_block() override;
  void thread_ended(unsigned thread) override;
  void barrier_passed(const Location& where) override;
  void warp_met(unsigned warp, std::uint32_t mask, WarpWork work) override;
  bool checks() const override { return shadow_ != nullptr; }

  /// Counts since the last call.
  KernelCounters take();

 private:
  struct SiteEntry {
    Location where;
    Space space;
    Access access;
    AccessCounters counters;
  };
  /// The visits of one warp to one site that may still gain lanes: requests, or masks of lanes.
  template <class Visit>
  struct OpenSite {
    std::vector<Visit> visits;
    std::uint32_t counted = 0;                ///< visits before these, since the last barrier
    std::array<std::uint32_t, kWarp> done{};  ///< by lane: how often it has been here
  };
  struct LocationHash {
    std::size_t operator()(const Location& at) const {
      return at.line() * 2654435761U + at.column() * 40503U + at.part() * 7919U;
    }
  };
  struct PassEntry {
    Location where;
    PassCounters counters;
  };
  struct Warp {
    std::vector<OpenSite<Request>> sites;
    std::vector<OpenSite<std::uint32_t>> passes;
    unsigned lanes = 0;
    std::uint32_t ended = 0;  ///< lanes
  };

  std::size_t site_of(Space space, Access access, const Location& where);
  void check(Access access, const void* address, unsigned bytes, const Location& where,
             bool relaxed);
  void close(Warp& warp);
  void count(SiteEntry& entry, const Warp& warp, std::span<const Request> requests);
  void tell(const SiteEntry& entry, const Warp& warp, Request request) const;
  void count(PassEntry& entry, std::span<const std::uint32_t> masks, unsigned lanes);
  /// The visit of this lane; those that all lanes have passed go to count_first before.
  template <class Visit, class Count>
  Visit& visit(Warp& warp, OpenSite<Visit>& site, unsigned lane, const Count& count_first);

  bool takes_turns_;
  RequestWatcher* watcher_ = nullptr;
  std::vector<SiteEntry> sites_;
  std::vector<std::size_t> buckets_;  ///< hash table of indices into sites_, plus 1
  std::vector<PassEntry> passes_;
  std::unordered_map<Location, std::size_t, LocationHash> pass_numbers_;
  std::vector<Warp> warps_;
  unsigned threads_ = 0;
  KernelCounters counters_;
  AccessOrder order_;
  std::unique_ptr<SharedShadow> shadow_;
  std::unique_ptr<GlobalWindow> global_;
  std::unique_ptr<GlobalHistory> history_;
};

}  // namespace triptych::cuda::emulation
