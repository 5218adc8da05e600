// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/control_flow.h"

#include <algorithm>
#include <utility>

namespace triptych::cuda::emulation {
namespace {

constexpr std::uint32_t kUnknown = ~0U;

}  // namespace

void ControlFlow::clear() {
  for (const auto node : nodes_) local_[node] = 0;
  nodes_.clear();
  next_.clear();
  before_.clear();
}

std::uint32_t ControlFlow::local(std::uint32_t node) {
  if (local_.size() <= node) local_.resize(node + 1);
  if (local_[node] == 0) {
    nodes_.push_back(node);
    next_.emplace_back();
    before_.emplace_back();
    local_[node] = static_cast<std::uint32_t>(nodes_.size());
  }
  return local_[node] - 1;
}

void ControlFlow::add(std::uint32_t from, std::uint32_t to) {
  const auto a = local(from), b = local(to);
  if (std::ranges::find(next_[a], b) != next_[a].end()) return;
  next_[a].push_back(b);
  before_[b].push_back(a);
}

/// Marks what the edges lead to.
void ControlFlow::spread(const Edges& edges, std::uint32_t from, Marks& marks) {
  std::vector<std::uint32_t> open = {from};
  while (!open.empty()) {
    const auto at = open.back();
    open.pop_back();
    for (const auto to : edges[at]) {
      if (marks[to]) continue;
      marks[to] = true;
      open.push_back(to);
    }
  }
}

/// Adds edges until every node leads to the end.
void ControlFlow::find_exits(std::span<const std::uint32_t> unfinished) {
  const auto end = local(kEnd);
  ends_next_ = next_;
  ends_before_ = before_;
  const auto leave = [&](std::uint32_t at) {
    ends_next_[at].push_back(end);
    ends_before_[end].push_back(at);
  };
  const auto count = static_cast<std::uint32_t>(nodes_.size());
  for (std::uint32_t at = 0; at < count; ++at) {
    if (at != end && next_[at].empty()) leave(at);
  }
  for (const auto node : unfinished) {
    const auto last = local(node);
    Marks reaches(count);
    spread(ends_before_, end, reaches);
    if (reaches[last]) continue;
    // It is in a loop without an exit. The head is the node of the loop that was seen first.
    Marks behind(count), ahead(count);
    spread(next_, last, ahead);
    spread(before_, last, behind);
    for (std::uint32_t at = 0; at < count; ++at) {
      if (!behind[at] || !ahead[at]) continue;
      leave(at);
      break;
    }
  }
}

/// Reverse postorder of a search from the end against the edges.
void ControlFlow::find_order() {
  order_.clear();
  Marks seen(nodes_.size());
  std::vector<std::pair<std::uint32_t, std::size_t>> open = {{local(kEnd), 0}};
  seen[local(kEnd)] = true;
  while (!open.empty()) {
    auto& [at, tried] = open.back();
    if (tried == ends_before_[at].size()) {
      order_.push_back(at);
      open.pop_back();
      continue;
    }
    const auto to = ends_before_[at][tried++];
    if (seen[to]) continue;
    seen[to] = true;
    open.emplace_back(to, 0);
  }
  std::ranges::reverse(order_);
}

void ControlFlow::find_meeting_points() {
  std::vector<std::uint32_t> place(nodes_.size(), kUnknown);
  for (std::uint32_t i = 0; i < order_.size(); ++i) place[order_[i]] = i;
  meets_.assign(nodes_.size(), kUnknown);
  meets_[order_[0]] = order_[0];
  const auto common = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) {
      if (place[a] < place[b]) std::swap(a, b);
      a = meets_[a];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto at : std::span(order_).subspan(1)) {
      auto meets = kUnknown;
      for (const auto to : ends_next_[at]) {
        if (meets_[to] == kUnknown) continue;
        meets = meets == kUnknown ? to : common(meets, to);
      }
      if (meets == meets_[at]) continue;
      meets_[at] = meets;
      changed = true;
    }
  }
}

void ControlFlow::solve(std::span<const std::uint32_t> unfinished) {
  find_exits(unfinished);
  find_order();
  find_meeting_points();
}

std::uint32_t ControlFlow::meeting_point(std::uint32_t node) const {
  const auto meets = meets_[local_[node] - 1];
  return meets == kUnknown ? kEnd : nodes_[meets];
}

}  // namespace triptych::cuda::emulation
