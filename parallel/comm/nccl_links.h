// Messages between GPUs of this machine by NCCL. Every GPU has one communicator, which NCCL works
// off in order. Both sides of a message are begun together, by the receiver, and one message after
// another, so that no order of theirs can block. The communicators are non-blocking: this polls
// their state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/comm/device_links.h"
#include "parallel/comm/fault.h"

namespace triptych::parallel {

class NcclLinks : public DeviceLinks {
 public:
  /// Rank r has GPU r. Throws DeviceError when there are not so many, CommError when they are not
  /// connected in time.
  NcclLinks(int ranks, Seconds timeout);
  ~NcclLinks() override;
  NcclLinks(const NcclLinks&) = delete;
  NcclLinks& operator=(const NcclLinks&) = delete;

  std::string_view name() const override { return "nccl"; }
  MessageMemory& memory(int rank) override;
  bool try_move(int from, int to, std::span<std::byte> target,
                std::span<const std::byte> source) override;
  bool try_all_reduce(std::span<const std::span<std::byte>> buffers, DType dtype) override;
  bool arrived(int rank) override;
  std::optional<RankPair> oldest_under_way() override;
  void abort() override;

 private:
  struct Gpu {
    Gpu() = default;
    ~Gpu();
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;  ///< of messages
    cudaEvent_t arrival = nullptr;  ///< of the last message to it
    bool under_way = false;         ///< such a message is
    int sender = -1;                ///< of it. -1: all
    std::uint64_t number = 0;       ///< of it, among those of all ranks
    bool marked = false;            ///< its event is in the stream
    std::unique_ptr<MessageMemory> memory;
  };

  Gpu& gpu(int rank) { return gpus_[static_cast<std::size_t>(rank)]; }
  void open(int rank);
  void connect(Seconds timeout);
  /// True when NCCL has put its last request into the stream.
  bool ready(int rank);
  bool all_ready();
  void require_alive() const;
  void begin(Gpu& receiver, int sender);
  /// Makes the stream of a ready rank signal the arrival of its message, before anything else
  /// follows in it, which would delay the signal.
  void mark(int rank);
  void abort_locked();

  std::vector<Gpu> gpus_;
  std::mutex mutex_;  ///< guards all of them
  bool aborted_ = false;
  std::uint64_t begun_ = 0;  ///< messages
};

}  // namespace triptych::parallel
