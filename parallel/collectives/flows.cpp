// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/flows.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace triptych::parallel {

FlowNetwork::FlowNetwork(const Interconnect& net) : wires_(net.links().size()) {
  for (std::size_t i = 0; i < wires_.size(); ++i)
    wires_[i].bytes_per_s = net.links()[i].bytes_per_s;
}

int FlowNetwork::begin(const std::vector<int>& path, double bytes, double time) {
  if (free_.empty()) {
    free_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int number = free_.back();
  free_.pop_back();
  auto& own = flow(number);
  own.path = &path;
  own.left = bytes;
  own.since = time;
  own.rate = 0;
  own.places.clear();
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    auto& list = wire(path[hop]).flows;
    own.places.push_back(static_cast<int>(list.size()));
    list.emplace_back(number, static_cast<int>(hop));
    changed_.push_back(path[hop]);
  }
  if (path.empty()) give(number, std::numeric_limits<double>::infinity(), time);
  return number;
}

void FlowNetwork::remove(int number) {
  auto& own = flow(number);
  for (std::size_t hop = 0; hop < own.path->size(); ++hop) {
    const int link = (*own.path)[hop];
    auto& list = wire(link).flows;
    const auto place = static_cast<std::size_t>(own.places[hop]);
    list[place] = list.back();
    const auto [moved, its_hop] = list[place];
    flow(moved).places[static_cast<std::size_t>(its_hop)] = static_cast<int>(place);
    list.pop_back();
    changed_.push_back(link);
  }
  ++own.version;
  free_.push_back(number);
}

void FlowNetwork::find_touched() {
  ++search_;
  touched_wires_.clear();
  touched_flows_.clear();
  const auto visit = [this](int link) {
    if (std::exchange(wire(link).seen, search_) != search_) touched_wires_.push_back(link);
  };
  for (const int link : changed_) visit(link);
  changed_.clear();
  for (std::size_t i = 0; i < touched_wires_.size(); ++i) {
    for (const auto& [number, hop] : wire(touched_wires_[i]).flows) {
      auto& found = flow(number);
      if (std::exchange(found.seen, search_) == search_) continue;
      touched_flows_.push_back(number);
      for (const int link : *found.path) visit(link);
    }
  }
}

/// The wire that has least to give each of its flows decides theirs; what they leave elsewhere is
/// for the others. Shares only grow while wires are emptied, so that an outdated entry of the heap
/// is a lower bound.
void FlowNetwork::fill() {
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> shares;
  for (const int link : touched_wires_) {
    auto& own = wire(link);
    own.spare = own.bytes_per_s;
    own.unfilled = static_cast<int>(own.flows.size());
    if (own.unfilled > 0) shares.emplace(own.spare / own.unfilled, link);
  }
  for (const int number : touched_flows_) flow(number).filled = false;
  rates_.resize(flows_.size());
  while (!shares.empty()) {
    const auto [share, link] = shares.top();
    shares.pop();
    auto& own = wire(link);
    if (own.unfilled == 0) continue;
    const double now = std::max(0.0, own.spare) / own.unfilled;
    if (now > share * (1 + 1e-12)) {
      shares.emplace(now, link);
      continue;
    }
    for (const auto& [number, hop] : own.flows) {
      auto& one = flow(number);
      if (std::exchange(one.filled, true)) continue;
      rates_[static_cast<std::size_t>(number)] = share;
      for (const int other : *one.path) {
        wire(other).spare -= share;
        --wire(other).unfilled;
      }
    }
  }
}

void FlowNetwork::give(int number, double rate, double time) {
  auto& own = flow(number);
  if (own.rate == rate) return;
  own.left = std::max(0.0, own.left - own.rate * (time - own.since));
  own.since = time;
  own.rate = rate;
  predictions_.push({time + own.left / rate, number, ++own.version});
}

void FlowNetwork::settle(double time) {
  if (changed_.empty()) return;
  find_touched();
  fill();
  for (const int number : touched_flows_)
    give(number, rates_[static_cast<std::size_t>(number)], time);
}

FlowNetwork::End FlowNetwork::first_end() {
  while (!predictions_.empty()) {
    const auto& top = predictions_.top();
    if (flow(top.flow).version == top.version) return {top.time, top.flow};
    predictions_.pop();
  }
  return {std::numeric_limits<double>::infinity(), -1};
}

}  // namespace triptych::parallel
