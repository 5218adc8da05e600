// Messages that share links as fluids do: at any time every flow has its max-min fair rate, the
// most that it can have without taking from one that has less (Bertsekas and Gallager, Data
// Networks, section 6.5.2: progressive filling).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/collectives/interconnect.h"

namespace triptych::parallel {

/// The flows that are on their way. Times never go back from one call to the next. A change takes
/// effect in settle(), and only for flows that share links with it, directly or through others.
class FlowNetwork {
 public:
  explicit FlowNetwork(const Interconnect& net);

  /// Bytes that begin to flow at `time` along a path, which must outlive them. Returns the flow's
  /// number.
  int begin(const std::vector<int>& path, double bytes, double time);
  /// Gives every flow its rate of now.
  void settle(double time);

  struct End {
    double time = 0;
    int flow = -1;  ///< -1: none is on its way
  };
  /// The flow that is the first to end if no other begins. All is settled.
  End first_end();
  /// Takes a flow that has ended off its links. Its number is free again.
  void remove(int flow);

 private:
  struct Flow {
    const std::vector<int>* path = nullptr;
    std::vector<int> places;  ///< in the list of each link of the path
    double left = 0;          ///< bytes, at `since`
    double rate = 0;          ///< bytes per second
    double since = 0;
    std::uint32_t version = 0;  ///< of its rate: older predictions of its end are void
    bool filled = false;        ///< has its rate in this settlement
  };
  struct Wire {
    double bytes_per_s = 0;
    std::vector<std::pair<int, int>> flows;  ///< a flow, and which of its links this is
    double spare = 0;                        ///< bytes per second that nobody has yet
    int unfilled = 0;
    std::uint64_t seen = 0;
  };
  struct Prediction {
    double time = 0;
    int flow = 0;
    std::uint32_t version = 0;
    bool operator>(const Prediction& other) const {
      return time != other.time ? time > other.time : flow > other.flow;
    }
  };

  Flow& flow(int number) { return flows_[static_cast<std::size_t>(number)]; }
  Wire& wire(int number) { return wires_[static_cast<std::size_t>(number)]; }
  /// The wires and flows that a change of this wire can reach.
  void find_touched(int changed);
  /// Gives the touched flows their fair rates.
  void fill();
  /// As fill(), if all touched wires offer the same to each of their flows, otherwise false.
  bool fill_evenly();
  void give(int number, double rate, double time);
  bool is_void(const Prediction& one) { return flow(one.flow).version != one.version; }
  /// Takes the void predictions out when they are most.
  void forget_void();

  std::vector<Wire> wires_;
  std::vector<Flow> flows_;
  std::vector<std::uint64_t> seen_;  ///< by flow: the last search that found it
  std::vector<int> free_;
  std::vector<int> changed_;  ///< wires
  std::vector<int> touched_wires_, touched_flows_;
  std::vector<double> rates_;  ///< of the touched flows
  std::uint64_t search_ = 0;
  std::vector<Prediction> predictions_;  ///< a heap, the earliest on top
};

}  // namespace triptych::parallel
