// The collective nodes of one rank's graph, run through its communicators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/collectives.h"
#include "core/runtime/collectives.h"
#include "parallel/comm/communication_lane.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/message_ring.h"
#include "parallel/comm/simulated_time.h"

namespace triptych::parallel {

/// The algorithm that adds in that order.
Algorithm algorithm_of(ReductionOrder order);

/// When collectives run: as their nodes come, or beside what is computed meanwhile.
enum class Overlap : std::uint8_t { None, Lane };

/// A collective on a rank's lane, by the seconds of its clock.
struct LaneEvent {
  std::string label;
  double start_s = 0, end_s = 0;
};

class RankCollectives : public CollectiveRunner {
 public:
  /// `axes`: the communicator of each mesh axis. They outlive the runner. With a lane, they are
  /// used by its thread while collectives are under way, and by nobody else.
  explicit RankCollectives(std::map<std::string, Communicator*> axes,
                           Overlap overlap = Overlap::None);
  ~RankCollectives() override;

  KernelTable kernels() const override;
  bool overlaps() const override { return overlap_ == Overlap::Lane; }
  void finish(std::size_t behind) override;
  /// nullptr: the run has no such axis.
  Communicator* find(const std::string& axis) const;
  /// The names of the axes, for messages.
  std::string axes() const;

  /// Runs `exchange` and then `deliver`: now, or the one on the lane, behind those before, and the
  /// other when somebody waits for it. The label stays where it is until then.
  void run(const std::string& label, const std::function<void()>& exchange,
           const std::function<void()>& deliver);
  /// Makes room for a message of so many elements in the buffer that all nodes share, as they run
  /// one after another; returns the bytes that it grew by. With a lane each has one of its own.
  std::size_t reserve(std::size_t elements);
  /// The ring of that name, which lives as long as a kernel uses it.
  std::shared_ptr<MessageRing> ring(const std::string& name, std::size_t bytes, std::size_t most);
  /// Collectives that run() was called for so far: the last one's number.
  std::uint64_t begun() const { return begun_; }
  /// Waits for the collective of that number and those before it.
  void finish_collective(std::uint64_t number);
  std::byte* message() { return message_->bytes().data(); }
  /// Where it lives: the transport's.
  MessageMemory& memory() const { return axes_.begin()->second->memory(); }

  /// From now on the clock of that rank is simulated. `work_clock` tells the seconds that it has
  /// computed, in which other ranks on the same processor must not count; the rank's thread asks.
  void simulate(SimulatedTime& time, int rank, std::function<double()> work_clock);
  /// Tells the simulated clock what the rank has computed since the last call.
  void count_computation();
  /// Seconds that the work clock counted since then are no computation.
  void skip();

  /// Seconds for which the rank waited for collectives.
  Seconds exposed() const { return exposed_; }
  /// Keeps an event of every collective until take_events, which returns them in their order: times
  /// of std::chrono::steady_clock.
  void record();
  std::vector<LaneEvent> take_events();

 private:
  void run_timed(const std::string& label, const std::function<void()>& exchange);

  std::map<std::string, Communicator*> axes_;
  Overlap overlap_;
  std::unique_ptr<MessageBuffer> message_;
  std::map<std::string, std::weak_ptr<MessageRing>> rings_;
  std::uint64_t begun_ = 0;
  SimulatedTime* time_ = nullptr;
  int rank_ = 0;
  std::function<double()> work_clock_;
  double counted_s_ = 0;  ///< of the work clock
  Seconds exposed_{0};
  bool recording_ = false;
  std::vector<LaneEvent> events_;
  /// A collective under way.
  struct Pending {
    std::function<void()> deliver;
    std::size_t number = 0;  ///< on the lane, or of the simulated clock
  };
  std::deque<Pending> pending_;              ///< oldest first
  std::size_t started_ = 0;                  ///< on the lane
  std::unique_ptr<CommunicationLane> lane_;  ///< last, so that it ends before what it uses
};

}  // namespace triptych::parallel
