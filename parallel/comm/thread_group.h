// Ranks as threads of one process. A message is an offer of the sender's own memory: the receiver
// reads it there, without a copy in between. When the ranks have their own devices, it moves from
// one to the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "parallel/comm/communicator.h"
#include "parallel/comm/device_links.h"
#include "parallel/comm/rank_group.h"

namespace triptych::parallel {

/// Memory that the ranks share.
class ThreadGroup : public RankGroup {
 public:
  /// With `links` messages live in the memory of the ranks' devices.
  ThreadGroup(int world_size, Seconds timeout, std::unique_ptr<DeviceLinks> links = nullptr);
  ~ThreadGroup() override;

  int world_size() const override;
  std::vector<int> local_ranks() const override;
  std::unique_ptr<Transport> transport(int rank) override;

  struct Shared;

 private:
  std::unique_ptr<Shared> shared_;
};

/// Runs body(communicator) for every rank, on a thread each, and returns when all have ended. An
/// exception of one becomes the fault of all. The group's fault is thrown, or, when a rank threw
/// before it was in any collective with others, its own exception.
void run_ranks(RankGroup& group, const std::function<void(Communicator&)>& body);
/// The same with a group of its own.
void run_ranks(int world_size, const CommunicatorOptions& options,
               const std::function<void(Communicator&)>& body);

}  // namespace triptych::parallel
