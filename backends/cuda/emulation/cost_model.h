// Counts the costs of a launch while it runs (kernel_costs.h), from its requests and pieces of
// code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "backends/cuda/emulation/caches.h"
#include "backends/cuda/emulation/kernel_costs.h"
#include "backends/cuda/emulation/request_watcher.h"

namespace triptych::cuda::emulation {

/// Counts of a piece of straight code.
struct PieceCounters {
  std::uint64_t warps = 0, lanes = 0;
  std::uint64_t parted = 0;  ///< warps whose lanes left it on more than one path
};

class CostModel : public RequestWatcher {
 public:
  /// `l1_bytes` is the share in an L1 of a block with this shared memory. The memory grows while a
  /// launch shows which it uses. `next` receives all calls, too, unless it is nullptr.
  CostModel(std::size_t l2_bytes, std::function<std::size_t()> shared_bytes,
            std::function<std::size_t(std::size_t)> l1_bytes, RequestWatcher* next);

  /// From now on the model observes every n-th block only. Launches before had so many blocks.
  void observe_every(std::uint64_t n, std::uint64_t earlier) {
    sample_ = n;
    earlier_blocks_ = earlier;
  }

  bool observes(std::uint64_t block) const override {
    return (earlier_blocks_ + block) % sample_ == 0;
  }
  void asked(const RequestPlace& place, const Request& request) override;
  void passed(const PiecePlace& place, std::uint32_t mask) override;
  void parted(const PiecePlace& place) override;
  bool begins_line(const LineBegin& line) override {
    return next_ != nullptr && next_->begins_line(line);
  }
  void writes(const void* address, std::size_t bytes) override {
    if (next_ != nullptr) next_->writes(address, bytes);
  }

  std::map<AccessSite, SiteCosts> sites() const;
  /// By the address to which the call at a piece's beginning returns.
  std::map<const void*, PieceCounters> pieces() const;

 private:
  struct Site {
    RequestPlace place;
    SiteCosts costs;
    bool is_used = false;
  };
  struct Piece {
    const void* pc = nullptr;
    PieceCounters counters;
  };
  /// State of a thread of the processor, which runs one block after another.
  struct Worker {
    std::vector<Site> sites;  ///< by number, as the next ones
    std::vector<Piece> pieces;
    std::optional<Dim3> block;
    unsigned warp = 0;
    SectorCache l1;
    std::optional<std::size_t> shared_bytes;  ///< for which l1_bytes is known
    std::size_t l1_bytes = 0;
  };

  PieceCounters& counters_of(const PiecePlace& place);
  void enter(Worker& worker, const RequestPlace& place);

  SharedCache l2_;
  std::function<std::size_t()> shared_bytes_;
  std::function<std::size_t(std::size_t)> l1_bytes_;
  RequestWatcher* next_;
  std::uint64_t sample_ = 1, earlier_blocks_ = 0;
  tbb::enumerable_thread_specific<Worker> workers_;
};

}  // namespace triptych::cuda::emulation
