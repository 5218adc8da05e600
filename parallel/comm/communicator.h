// What strategies and users see of a group of ranks: its collectives. All ranks call the same ones
// in the same order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "parallel/collectives/algorithms.h"
#include "parallel/comm/transport.h"

namespace triptych::parallel {

struct CommunicatorOptions {
  Seconds timeout{30};  ///< how long a rank may keep the others waiting
};

/// A collective on one buffer.
struct CollectiveCall {
  Collective collective = Collective::AllReduce;
  Algorithm algorithm = Algorithm::Direct;
  DType dtype = DType::F32;
  std::int64_t elements = 0;
  int root = 0;
  std::string label = {};  ///< for messages: "grad bucket 2"
};

/// A call made ready: it may run any number of times without allocating.
class PreparedCollective {
 public:
  /// Throws InvalidArgument as make_schedule does.
  PreparedCollective(const CollectiveCall& call, int rank, int world_size);

  const CollectiveCall& call() const { return call_; }
  const Schedule& schedule() const { return schedule_; }

 private:
  friend class Communicator;

  CollectiveCall call_;
  Schedule schedule_;
  std::uint64_t fingerprint_;
  std::vector<std::byte> scratch_;
  std::vector<std::uint64_t> messages_;  ///< by step: the number of what it sent
};

/// One rank of a group. Used by one thread at a time. Every call throws the group's FaultError, the
/// same on all ranks, when one of them ends, stalls, fails or calls something else; after that the
/// group is of no more use.
class Communicator {
 public:
  explicit Communicator(std::unique_ptr<Transport> transport);

  int rank() const { return transport_->rank(); }
  int world_size() const { return transport_->world_size(); }
  std::string_view transport_name() const { return transport_->name(); }

  PreparedCollective prepare(const CollectiveCall& call) const;
  /// Runs it on `data`: call().elements elements, aligned for their dtype.
  void run(PreparedCollective& collective, std::byte* data);

  /// data = the sum over all ranks.
  void all_reduce(std::span<float> data, Algorithm algorithm = Algorithm::Direct,
                  std::string label = {});
  /// data = the root's.
  void broadcast(std::span<float> data, int root, std::string label = {});
  /// Returns when all ranks have come here.
  void barrier();

  /// Seconds that this rank has spent in collectives.
  Seconds time() const { return time_; }
  /// Tells the group that this rank failed with that message.
  void fail(const std::string& what);

 private:
  void step(PreparedCollective& collective, std::size_t number, std::byte* data,
            const Envelope& envelope);

  std::unique_ptr<Transport> transport_;
  std::uint64_t sequence_ = 0;
  Seconds time_{0};
};

}  // namespace triptych::parallel
