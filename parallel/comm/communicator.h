// Group of ranks as strategies and users see it: its collectives. All ranks call the same ones
// in the same order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
  PreparedCollective(const CollectiveCall& call, int rank, int world_size,
                     MessageMemory& memory = host_memory());

  const CollectiveCall& call() const { return call_; }
  const Schedule& schedule() const { return schedule_; }

 private:
  friend class Communicator;

  CollectiveCall call_;
  Schedule schedule_;
  std::uint64_t fingerprint_;
  std::unique_ptr<MessageBuffer> scratch_;  ///< in the transport's memory
  std::unique_ptr<MessageBuffer> staged_;   ///< there, of a call on the host's
  std::vector<std::uint64_t> messages_;     ///< by step: the number of its message
};

/// Observes the actions of a rank, in order. simulated_time.h computes times from them. Ranks are
/// the transport's.
class CommunicationObserver {
 public:
  virtual ~CommunicationObserver() = default;
  virtual void on_steps(const Schedule& schedule, std::span<const int> members,
                        std::size_t element_bytes) = 0;
};

/// One rank of a group. Used by one thread at a time. Every call throws the group's FaultError, the
/// same on all ranks, when one of them ends, stalls, fails or calls something else. After that the
/// group is of no more use.
class Communicator {
 public:
  /// Connects all ranks of the transport.
  explicit Communicator(std::shared_ptr<Transport> transport);

  /// A communicator of those ranks alone, including this one. Each of them makes it with the same
  /// list. `number`, from 1 to 4095, tells it from others with ranks in common.
  Communicator subgroup(std::vector<int> members, int number) const;

  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(members_.size()); }
  std::string_view transport_name() const { return transport_->name(); }
  void observe(CommunicationObserver* observer) { observer_ = observer; }

  PreparedCollective prepare(const CollectiveCall& call) const;
  /// Runs it on `data` of the host: call().elements elements, aligned for their dtype.
  void run(PreparedCollective& collective, std::byte* data);
  /// The same on data that are in memory() already.
  void run_in_place(PreparedCollective& collective, std::byte* data);
  /// Where the transport's messages live. Data of the host are copied there and back.
  MessageMemory& memory() const { return transport_->memory(); }

  /// data = the sum over all ranks.
  void all_reduce(std::span<float> data, Algorithm algorithm = Algorithm::Direct,
                  std::string label = {});
  /// data = the root's.
  void broadcast(std::span<float> data, int root, std::string label = {});
  /// Returns when all ranks have come here.
  void barrier();
  /// The texts of all ranks, by rank.
  std::vector<std::string> gather_texts(std::string_view own, const std::string& label);
  /// Throws the group's FaultError (Mismatch), naming one of the few, unless all ranks give the
  /// same value. `what` is for example "the plan".
  void require_same(std::uint64_t value, const std::string& what);

  /// Offers bytes of the host to a rank and returns the message's number. They must stay as they
  /// are until wait_taken. Messages between two ranks arrive in order.
  std::uint64_t send(int to, std::span<const std::byte> bytes, const std::string& label);
  void wait_taken(int to, std::uint64_t message, const std::string& label);
  void receive(int from, std::span<std::byte> target, const std::string& label);
  /// The same with bytes that are in memory() already.
  std::uint64_t send_in_place(int to, std::span<const std::byte> bytes, const std::string& label);
  void receive_in_place(int from, std::span<std::byte> target, const std::string& label);
  /// Waits until one of those ranks has sent something that was not received, and returns it.
  int wait_any(std::span<const int> from, const std::string& label);

  /// As Transport::tell_busy: a rank that does other work reports after each piece of it that it is
  /// alive.
  void tell_busy(const char* doing) { transport_->tell_busy(doing); }

  /// Seconds that this rank has spent in collectives.
  Seconds time() const { return time_; }
  /// Tells the group that this rank failed with that message.
  void fail(const std::string& what);

 private:
  /// Numbers of all ranks, by rank.
  std::vector<std::uint64_t> gather_numbers(std::uint64_t own, const std::string& label);
  /// Runs `work`. An exception in it becomes the group's fault in `operation`.
  void guard(const std::function<void()>& work, const std::function<std::string()>& operation);
  void step(PreparedCollective& collective, std::size_t number, std::byte* data,
            const Envelope& envelope);
  int member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  void observe_message(ScheduleStep::Kind kind, int peer, std::size_t bytes);

  std::shared_ptr<Transport> transport_;
  /// Messages between this rank and each of the transport, of all groups of ranks.
  struct MessageCounts {
    std::vector<std::uint64_t> sent, received;
  };
  /// Copies of the host's messages that were not taken yet, by receiver.
  using StagedMessages = std::vector<std::map<std::uint64_t, std::unique_ptr<MessageBuffer>>>;
  Envelope next_to(int peer, Envelope envelope);
  Envelope next_from(int peer, Envelope envelope);

  std::shared_ptr<MessageCounts> counts_;
  std::vector<int> members_;  ///< by rank: its number in the transport
  int rank_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<std::uint64_t> sent_, received_;  ///< messages by rank
  std::shared_ptr<StagedMessages> staged_;      ///< nothing where the memory is the host's
  CommunicationObserver* observer_ = nullptr;
  Seconds time_{0};
};

}  // namespace triptych::parallel
