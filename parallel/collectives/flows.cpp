// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/flows.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
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
    seen_.push_back(0);
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

void FlowNetwork::find_touched(int changed) {
  touched_wires_.clear();
  touched_flows_.clear();
  const auto visit = [this](int link) {
    if (std::exchange(wire(link).seen, search_) != search_) touched_wires_.push_back(link);
  };
  visit(changed);
  for (std::size_t i = 0; i < touched_wires_.size(); ++i) {
    for (const auto& [number, hop] : wire(touched_wires_[i]).flows) {
      auto& found = seen_[static_cast<std::size_t>(number)];
      if (std::exchange(found, search_) == search_) continue;
      touched_flows_.push_back(number);
      for (const int link : *flow(number).path) visit(link);
    }
  }
}

/// This is so in an exchange of all with all on a ring, where each of a flow's many wires would
/// need an update for each rate.
bool FlowNetwork::fill_evenly() {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const int link : touched_wires_) {
    const auto& own = wire(link);
    if (own.flows.empty()) continue;
    const double share = own.bytes_per_s / static_cast<double>(own.flows.size());
    least = std::min(least, share);
    most = std::max(most, share);
  }
  if (most > least * (1 + 1e-12)) return false;
  for (const int number : touched_flows_) rates_[static_cast<std::size_t>(number)] = least;
  return true;
}

/// The wire that has least to give each of its flows decides theirs. The rest belongs to the
/// others. Shares only grow while wires are emptied, so that an outdated entry of the heap is a
/// lower bound.
void FlowNetwork::fill() {
  rates_.resize(flows_.size());
  if (fill_evenly()) return;
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> shares;
  for (const int link : touched_wires_) {
    auto& own = wire(link);
    own.spare = own.bytes_per_s;
    own.unfilled = static_cast<int>(own.flows.size());
    if (own.unfilled > 0) shares.emplace(own.spare / own.unfilled, link);
  }
  for (const int number : touched_flows_) flow(number).filled = false;
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
  predictions_.push_back({time + own.left / rate, number, ++own.version});
  std::ranges::push_heap(predictions_, std::greater<>());
}

void FlowNetwork::forget_void() {
  if (predictions_.size() <= 2 * (flows_.size() - free_.size())) return;
  std::erase_if(predictions_, [this](const Prediction& one) { return is_void(one); });
  std::ranges::make_heap(predictions_, std::greater<>());
}

void FlowNetwork::settle(double time) {
  ++search_;
  for (const int link : changed_) {
    if (wire(link).seen == search_) continue;
    find_touched(link);
    fill();
    for (const int number : touched_flows_)
      give(number, rates_[static_cast<std::size_t>(number)], time);
  }
  changed_.clear();
  forget_void();
}

FlowNetwork::End FlowNetwork::first_end() {
  while (!predictions_.empty()) {
    const auto& top = predictions_.front();
    if (!is_void(top)) return {top.time, top.flow};
    std::ranges::pop_heap(predictions_, std::greater<>());
    predictions_.pop_back();
  }
  return {std::numeric_limits<double>::infinity(), -1};
}

}  // namespace triptych::parallel
