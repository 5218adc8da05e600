// The wires between ranks as a model: links with a latency and a bandwidth, and the path of links
// that a message takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace triptych::parallel {

/// One direction of a wire: a message of b bytes takes alpha_s + b / bytes_per_s.
struct Link {
  double alpha_s = 0;
  double bytes_per_s = 1;
};

class Interconnect {
 public:
  /// Each rank has a link to and one from its neighbours r - 1 and r + 1, modulo world_size.
  /// Messages take the shorter way around.
  static Interconnect ring(int world_size, const Link& link);
  /// width x height ranks, row by row, with links to the four neighbours, also around the edges, as
  /// in a TPU's 2-D torus. Messages go along the row first.
  static Interconnect torus(int width, int height, const Link& link);
  /// Each rank has a link to and one from a switch that is never the bottleneck. `alpha_s` counts
  /// once per link, so 2 times per message.
  static Interconnect switched(int world_size, const Link& link);
  /// Ranks on PCIe slots, `slots` to a bridge, and the bridges on a host: messages between bridges
  /// share their links to the host.
  static Interconnect pcie_tree(int world_size, int slots, const Link& link);

  int world_size() const { return world_size_; }
  const std::vector<Link>& links() const { return links_; }
  /// The links that a message passes, in order. None from a rank to itself.
  const std::vector<int>& path(int from, int to) const {
    return paths_[static_cast<std::size_t>(from) * static_cast<std::size_t>(world_size_) +
                  static_cast<std::size_t>(to)];
  }

 private:
  explicit Interconnect(int world_size);
  int add_link(const Link& link);
  std::vector<int>& path_of(int from, int to);

  int world_size_;
  std::vector<Link> links_;
  std::vector<std::vector<int>> paths_;
};

/// "ring", "torus:4x2", "switch" or "pcie:2" (slots to a bridge). Throws InvalidArgument for
/// another name and for one that does not have `world_size` ranks.
Interconnect make_interconnect(std::string_view topology, int world_size, const Link& link);

}  // namespace triptych::parallel
