// The collective nodes of one rank's graph, run through its communicators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/collectives.h"
#include "parallel/comm/communication_lane.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/message_ring.h"
#include "parallel/comm/simulated_time.h"
#include "parallel/strategies/mesh.h"

namespace triptych::parallel {

/// Called in the rank's own thread, and for exchanges in the thread that makes them.
class CollectiveObserver {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  virtual ~CollectiveObserver() = default;
  /// The rank computed until now, since the last call of this or the next.
  virtual void computation_ends() {}
  /// The rank computes from now on.
  virtual void computation_begins() {}
  /// The messages of one more collective were exchanged.
  virtual void exchanged(const std::string& label, Instant start, Instant end) {
    static_cast<void>(label), static_cast<void>(start), static_cast<void>(end);
  }
  /// The rank waited for the oldest collective that was exchanged and not waited for.
  virtual void awaited() {}
};

/// The simulated clock of one rank, which runs with its computation alone.
class RankClock : public CollectiveObserver {
 public:
  /// `work_clock` returns the seconds that the rank has computed, without those of other ranks on
  /// the same processor. The rank's thread asks.
  RankClock(SimulatedTime& time, int rank, std::function<double()> work_clock);

  /// Sees the messages of the rank's communicators.
  CommunicationObserver* messages() const { return time_.observer(rank_); }
  void computation_ends() override;
  void computation_begins() override { counted_s_ = work_clock_(); }
  void exchanged(const std::string& label, Instant start, Instant end) override;
  void awaited() override;

 private:
  SimulatedTime& time_;
  int rank_;
  std::function<double()> work_clock_;
  double counted_s_ = 0;            ///< of the work clock
  std::deque<std::size_t> marked_;  ///< collectives not waited for, oldest first
};

/// A collective on a rank's lane, by the seconds of std::chrono::steady_clock.
struct LaneEvent {
  std::string label;
  double start_s = 0, end_s = 0;
};

/// Keeps an event of every exchange.
class LaneRecorder : public CollectiveObserver {
 public:
  void exchanged(const std::string& label, Instant start, Instant end) override;
  /// In their order, of collectives that the rank has waited for.
  const std::vector<LaneEvent>& events() const { return events_; }

 private:
  std::vector<LaneEvent> events_;
};

/// When collectives run: at the position of their nodes, or overlapping the computation.
enum class Overlap : std::uint8_t { None, Lane };

class RankCollectives : public CollectiveRunner {
 public:
  /// The axes of `mesh`, each with a communicator of the ranks that this one's line along it has.
  /// Without a mesh dp, pp and tp, each with all ranks along it. `all` outlives the runner. With a
  /// lane, only its thread uses the communicators while collectives are pending. Signs of life are
  /// the exception.
  explicit RankCollectives(Communicator& all, const Mesh& mesh = {},
                           Overlap overlap = Overlap::None);
  ~RankCollectives() override;

  KernelTable kernels() const override;
  bool overlaps() const override { return overlap_ == Overlap::Lane; }
  void finish(std::size_t behind) override;
  void computes() override;
  /// nullptr: the run has no such axis.
  Communicator* find(const std::string& axis) const;
  /// The names of the axes, for messages.
  std::string axes() const;

  /// Exchanges `messages` and then delivers: now, or the one on the lane, behind those before, and
  /// the other when somebody waits for it. The label stays where it is until then.
  void run(const std::string& label, const std::function<void()>& messages,
           const std::function<void()>& deliver);
  /// Reserves a message of this many bytes in the buffer that all nodes share, as they run one
  /// after another. Returns the bytes that it grew by. With a lane each has one of its own.
  std::size_t reserve(std::size_t bytes);
  /// The ring of that name, which lives as long as a kernel uses it.
  std::shared_ptr<MessageRing> ring(const std::string& name, std::size_t bytes, std::size_t most);
  /// Collectives that run() was called for so far: the last one's number.
  std::uint64_t begun() const { return begun_; }
  /// Waits for the collective of that number and those before it.
  void finish_collective(std::uint64_t number);
  std::byte* message() { return message_->bytes().data(); }
  /// Where it lives: the transport's.
  MessageMemory& memory() const { return axes_.begin()->second->memory(); }

  /// Tells an observer of the collectives that begin from now on.
  void observe(std::shared_ptr<CollectiveObserver> observer);
  void forget(const std::shared_ptr<CollectiveObserver>& observer);
  /// From now on that is the rank's clock. Exchanges are made by the rank's thread.
  void simulate(const std::shared_ptr<RankClock>& clock);
  /// News for observers: by whoever runs the graph, and by the collectives, during which the
  /// rank does not compute.
  void computation_ends();
  void computation_begins();

  /// Seconds for which the rank waited for collectives.
  Seconds exposed() const { return exposed_; }

 private:
  using Observers = std::vector<std::shared_ptr<CollectiveObserver>>;

  static void exchange(const std::string& label, const std::function<void()>& messages,
                       const Observers& observers);
  void finish_one(const std::function<void()>& deliver);

  std::vector<std::unique_ptr<Communicator>> lines_;  ///< of the mesh
  std::map<std::string, Communicator*> axes_;
  Overlap overlap_;
  std::unique_ptr<MessageBuffer> message_;
  std::map<std::string, std::weak_ptr<MessageRing>> rings_;
  std::uint64_t begun_ = 0;
  Observers observers_;
  bool simulated_ = false;
  Seconds exposed_{0};
  /// A collective under way.
  struct Pending {
    std::function<void()> deliver;
    std::size_t number = 0;  ///< on the lane. 0: exchanged
  };
  std::deque<Pending> pending_;              ///< oldest first
  std::size_t started_ = 0;                  ///< on the lane
  std::unique_ptr<CommunicationLane> lane_;  ///< last, so that it ends before the others
};

}  // namespace triptych::parallel
