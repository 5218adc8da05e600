// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/interconnect.h"

#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "core/base/error.h"

namespace triptych::parallel {
namespace {

void require_positive(int count, const char* what) {
  if (count < 1)
    throw InvalidArgument(fmt::format("an interconnect of {} {}; at least 1", count, what));
}

/// Steps from a to b on a ring of n, the shorter way: positive upwards.
int around(int a, int b, int n) {
  const int up = (b - a + n) % n;
  return up <= n - up ? up : up - n;
}

}  // namespace

Interconnect::Interconnect(int world_size) : world_size_(world_size) {
  require_positive(world_size, "ranks");
  paths_.resize(static_cast<std::size_t>(world_size) * static_cast<std::size_t>(world_size));
}

int Interconnect::add_link(const Link& link) {
  links_.push_back(link);
  return static_cast<int>(links_.size()) - 1;
}

std::vector<int>& Interconnect::path_of(int from, int to) {
  return paths_[static_cast<std::size_t>(from) * static_cast<std::size_t>(world_size_) +
                static_cast<std::size_t>(to)];
}

Interconnect Interconnect::ring(int world_size, const Link& link) {
  return torus(world_size, 1, link);
}

Interconnect Interconnect::torus(int width, int height, const Link& link) {
  require_positive(width, "columns");
  require_positive(height, "rows");
  Interconnect net(width * height);
  // Links of rank r: 4 r + 0 to the right, 1 to the left, 2 down, 3 up.
  for (int i = 0; i < 4 * net.world_size_; ++i) net.add_link(link);
  for (int from = 0; from < net.world_size_; ++from) {
    for (int to = 0; to < net.world_size_; ++to) {
      int x = from % width, y = from / width;
      auto& path = net.path_of(from, to);
      for (int dx = around(x, to % width, width); dx != 0; dx += dx > 0 ? -1 : 1) {
        path.push_back(4 * (y * width + x) + (dx > 0 ? 0 : 1));
        x = (x + (dx > 0 ? 1 : width - 1)) % width;
      }
      for (int dy = around(y, to / width, height); dy != 0; dy += dy > 0 ? -1 : 1) {
        path.push_back(4 * (y * width + x) + (dy > 0 ? 2 : 3));
        y = (y + (dy > 0 ? 1 : height - 1)) % height;
      }
    }
  }
  return net;
}

Interconnect Interconnect::switched(int world_size, const Link& link) {
  return pcie_tree(world_size, world_size, link);
}

Interconnect Interconnect::pcie_tree(int world_size, int slots, const Link& link) {
  require_positive(slots, "slots per bridge");
  Interconnect net(world_size);
  const int bridges = (world_size + slots - 1) / slots;
  // Links of rank or bridge i: 2 i upwards, 2 i + 1 downwards.
  for (int i = 0; i < 2 * (world_size + bridges); ++i) net.add_link(link);
  for (int from = 0; from < world_size; ++from) {
    for (int to = 0; to < world_size; ++to) {
      if (from == to) continue;
      const int first = from / slots, last = to / slots;
      auto& path = net.path_of(from, to);
      path = {2 * from, 2 * to + 1};
      if (first != last)
        path = {2 * from, 2 * (world_size + first), 2 * (world_size + last) + 1, 2 * to + 1};
    }
  }
  return net;
}

Interconnect make_interconnect(std::string_view topology, int world_size, const Link& link) {
  int first = 0, second = 0;
  char rest = 0;
  const std::string text(topology);
  if (text == "ring") return Interconnect::ring(world_size, link);
  if (text == "switch") return Interconnect::switched(world_size, link);
  if (std::sscanf(text.c_str(), "torus:%dx%d%c", &first, &second, &rest) == 2) {
    if (first < 1 || second < 1 || first * second != world_size) {
      throw InvalidArgument(fmt::format("\"{}\" has not {} ranks; its sides must give their number",
                                        text, world_size));
    }
    return Interconnect::torus(first, second, link);
  }
  if (std::sscanf(text.c_str(), "pcie:%d%c", &first, &rest) == 1)
    return Interconnect::pcie_tree(world_size, first, link);
  throw InvalidArgument(fmt::format(
      "no interconnect \"{}\"; choose from: ring, torus:4x2, switch, pcie:2", topology));
}

}  // namespace triptych::parallel
