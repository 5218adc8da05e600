// The collective nodes of one rank's graph, run through its communicators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/runtime/collectives.h"
#include "core/runtime/device.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/simulated_time.h"

namespace triptych::parallel {

/// The algorithm that adds in an order of AllReduce: "rank-ordered", "shard-tree", "ring" or
/// "library". Throws InvalidArgument listing the names.
Algorithm algorithm_of_order(std::string_view order);

class RankCollectives : public CollectiveRunner {
 public:
  /// `axes`: the communicator of each mesh axis. They outlive the runner.
  explicit RankCollectives(std::map<std::string, Communicator*> axes);

  KernelTable kernels() const override;
  /// nullptr: the run has no such axis.
  Communicator* find(const std::string& axis) const;
  /// The names of the axes, for messages.
  std::string axes() const;

  /// Makes room for a message of so many elements in the buffer that all nodes share, as they run
  /// one after another; returns the bytes that it grew by.
  std::size_t reserve(std::size_t elements);
  std::byte* message() { return message_->bytes().data(); }
  /// Where it lives: the transport's.
  MessageMemory& memory() const { return axes_.begin()->second->memory(); }

  /// From now on the clock of that rank is simulated.
  void simulate(SimulatedTime& time, int rank);
  /// Tells the simulated clock what `device` has computed since the last call.
  void count_computation(Device& device);
  /// What the device's clock counted since then is no computation.
  void skip(Device& device);

 private:
  std::map<std::string, Communicator*> axes_;
  std::unique_ptr<MessageBuffer> message_;
  SimulatedTime* time_ = nullptr;
  int rank_ = 0;
  double counted_s_ = 0;  ///< of the device's clock
};

}  // namespace triptych::parallel
