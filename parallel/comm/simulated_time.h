// Virtual time next to real ranks: the time of their computation and communication on an
// interconnect. The data move as they do. Only the clocks are simulated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parallel/collectives/price.h"
#include "parallel/comm/communicator.h"

namespace triptych::parallel {

/// Simulated seconds of one rank.
struct RankTime {
  double total_s = 0;
  double compute_s = 0;
  /// Not hidden behind computation.
  double exposed_s() const { return total_s - compute_s; }
};

/// Times of a rank, in simulated seconds.
struct RankTimeline {
  struct Collective {
    std::string label;
    Interval time;
  };
  double start_s = 0;
  std::vector<Interval> computations;  ///< by call of compute()
  std::vector<Collective> collectives;
};

class SimulatedTime {
 public:
  /// Additions of received data take bytes / add_bytes_per_s. 0: no time.
  SimulatedTime(const Interconnect& interconnect, double add_bytes_per_s);

  /// For Communicator::observe of that rank. Each rank's is used by its thread alone.
  CommunicationObserver* observer(int rank) { return &logs_[static_cast<std::size_t>(rank)]; }
  /// That rank has computed for so long, in a piece of its own, since all that it waited for.
  void compute(int rank, double seconds);
  /// How often compute() was called for the rank since advance().
  std::size_t computations(int rank) const {
    return logs_[static_cast<std::size_t>(rank)].delays.size();
  }
  /// Counts the work since the last mark as one collective, which overlaps the rank's computation
  /// until the rank waits. (It waits for everything without a mark.) Returns its number since
  /// advance(), from 1.
  std::size_t mark(int rank, std::string label);
  /// Puts all that the rank computes from now on behind its first so many collectives since
  /// advance().
  void wait(int rank, std::size_t collectives);
  /// Lets the clocks run to the end of the ranks' actions since the last call. While it runs no
  /// rank does anything, and each message was received.
  void advance();

  /// Forgets the ranks' actions since the last call of advance().
  void discard();

  const std::vector<RankTime>& ranks() const { return times_; }
  /// Messages of the last advance(), for drawing.
  const std::vector<Flight>& flights() const { return flights_; }
  /// Timeline of each rank, in the last advance().
  const std::vector<RankTimeline>& timelines() const { return timelines_; }

 private:
  /// Work of a rank, as one long schedule in bytes.
  struct Log : CommunicationObserver {
    void on_steps(const Schedule& schedule, std::span<const int> members,
                  std::size_t element_bytes) override;
    Schedule schedule;
    std::vector<Delay> delays;
    std::size_t waited = 0;  ///< for so many steps
    struct Mark {
      std::string label;
      std::size_t end = 0;  ///< the step behind the collective's last
    };
    std::vector<Mark> marks;
  };

  Interconnect interconnect_;
  double add_bytes_per_s_;
  std::vector<Log> logs_;
  std::vector<RankTime> times_;
  std::vector<Flight> flights_;
  std::vector<RankTimeline> timelines_;
};

}  // namespace triptych::parallel
