// Looks on while a block runs: counts its requests, and checks every access.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/global_shadow.h"
#include "backends/cuda/emulation/shared_shadow.h"

namespace triptych::cuda::emulation {

class Recorder : public BlockObserver {
 public:
  /// Checks accesses where there is a shadow of global memory.
  explicit Recorder(GlobalShadow* global);

  /// The recorder of the thread that runs now.
  static Recorder& current();

  void access(Space space, Access access, const void* address, unsigned bytes,
              const Location& where);
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
  /// The requests of one site in one warp that may still gain lanes.
  struct OpenSite {
    std::vector<Request> requests;
    std::array<std::uint32_t, kWarp> done{};  ///< by lane: how often it has been here
  };
  struct Warp {
    std::vector<OpenSite> sites;
    unsigned lanes = 0, ended = 0;
  };

  std::size_t site_of(Space space, Access access, const Location& where);
  void check(Access access, const void* address, unsigned bytes, const Location& where);
  void close(Warp& warp);

  std::vector<SiteEntry> sites_;
  std::vector<std::size_t> buckets_;  ///< hash table of indices into sites_, plus 1
  std::vector<Warp> warps_;
  unsigned threads_ = 0;
  KernelCounters counters_;
  std::unique_ptr<SharedShadow> shadow_;
  std::unique_ptr<GlobalWindow> global_;
};

}  // namespace triptych::cuda::emulation
