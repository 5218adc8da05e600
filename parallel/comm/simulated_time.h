// Virtual time beside real ranks: what their computation and communication would take on an
// interconnect. The data move as they do; only the clocks are simulated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
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

class SimulatedTime {
 public:
  /// Additions of received data take bytes / add_bytes_per_s; 0: no time.
  SimulatedTime(const Interconnect& interconnect, double add_bytes_per_s);

  /// For Communicator::observe of that rank. Each rank's is used by its thread alone.
  CommunicationObserver* observer(int rank) { return &logs_[static_cast<std::size_t>(rank)]; }
  /// That rank has computed for so long since its last communication.
  void compute(int rank, double seconds);
  /// Lets the clocks run to the end of what the ranks did since the last call. While it runs no
  /// rank does anything, and each message was received.
  void advance();

  /// Forgets what the ranks did since the last call of advance().
  void discard();

  const std::vector<RankTime>& ranks() const { return times_; }
  /// Messages of the last advance(), for drawing.
  const std::vector<Flight>& flights() const { return flights_; }

 private:
  /// What a rank did, as one long schedule in bytes.
  struct Log : CommunicationObserver {
    void on_steps(const Schedule& schedule, std::span<const int> members,
                  std::size_t element_bytes) override;
    Schedule schedule;
    std::vector<Delay> delays;
  };

  Interconnect interconnect_;
  double add_bytes_per_s_;
  std::vector<Log> logs_;
  std::vector<RankTime> times_;
  std::vector<Flight> flights_;
};

}  // namespace triptych::parallel
