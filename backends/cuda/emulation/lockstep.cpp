// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/lockstep.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace triptych::cuda::emulation {
namespace {

constexpr std::uint32_t kUnknown = ~0U;

/// Steps of a lane after which its warp's instructions are issued.
constexpr std::size_t kLong = 4096;
constexpr std::uint32_t kNever = ~0U;  ///< a node

unsigned first_lane(std::uint32_t mask) { return static_cast<unsigned>(std::countr_zero(mask)); }

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

/// Marks the targets of the edges.
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

void CommonPath::clear() {
  origins_.clear();
  steps_.clear();
  distances_.clear();
  at_ = {};
}

Request CommonPath::request(std::size_t step, std::size_t access, std::uint32_t mask) const {
  const auto& common = steps_[step];
  const auto* distances = distances_.data() + access * kLanes;
  Request request = {.mask = mask, .bytes = common.bytes, .addresses = {}};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    request.addresses[lane] = common.address + static_cast<std::uint64_t>(distances[lane]);
  }
  return request;
}

std::vector<LaneStep> CommonPath::steps_of(unsigned lane) const {
  std::vector<LaneStep> steps(steps_.begin(), steps_.begin() + at_[lane].step);
  std::size_t access = 0;
  for (auto& step : steps) {
    if (step.bytes == 0) continue;
    step.address += static_cast<std::uint64_t>(distances_[access++ * kLanes + lane]);
  }
  return steps;
}

void CommonPath::drop(std::size_t steps) {
  const auto end = steps_.begin() + static_cast<std::ptrdiff_t>(steps);
  const auto accesses =
      std::count_if(steps_.begin(), end, [](auto& step) { return step.bytes != 0; });
  steps_.erase(steps_.begin(), end);
  const auto origins = static_cast<std::ptrdiff_t>(std::min(origins_.size(), steps));
  origins_.erase(origins_.begin(), origins_.begin() + origins);
  distances_.erase(distances_.begin(),
                   distances_.begin() + accesses * static_cast<std::ptrdiff_t>(kLanes));
  for (auto& at : at_) {
    at.step -= std::min(at.step, static_cast<std::uint32_t>(steps));
    at.access -= std::min(at.access, static_cast<std::uint32_t>(accesses));
  }
}

void Lockstep::begin(std::uint32_t lanes) {
  all_ = lanes;
  ended_ = 0;
  longest_ = kLong;
  for (auto& lane : lanes_) lane.frames.clear();
  common_frames_.clear();
  forget();
}

/// Begins again, with all lanes that have not ended at one place.
void Lockstep::forget() {
  if (has_flow_) flow_.clear();
  has_flow_ = is_solved_ = false;
  active_ = running();
  met_ = 0;
  is_common_ = at_start_ = true;
  common_.clear();
  common_scanned_ = 0;
  common_node_ = common_scanned_node_ = ControlFlow::kStart;
}

/// The lanes take different paths from now on.
void Lockstep::separate() {
  is_common_ = false;
  groups_.clear();
  for (auto rest = active_; rest != 0; rest &= rest - 1) {
    const auto number = first_lane(rest);
    Lane& lane = lanes_[number];
    lane.steps.clear();
    if (at_start_) lane.steps.push_back({ControlFlow::kStart, kNoPass, 0});
    const auto steps = common_.steps_of(number);
    lane.steps.insert(lane.steps.end(), steps.begin(), steps.end());
    lane.at = lane.last_pass = lane.scanned = 0;
    for (std::size_t i = 0; i < lane.steps.size(); ++i) {
      if (lane.steps[i].bytes == 0) lane.last_pass = i;
    }
    lane.scanned_node = common_node_;
    if (common_frames_.empty()) continue;
    std::erase_if(lane.frames,
                  [&](const Frame& frame) { return frame.depth >= common_frames_.front().depth; });
    lane.frames.insert(lane.frames.end(), common_frames_.begin(), common_frames_.end());
  }
  common_frames_.clear();
  if (active_ == 0) return;
  groups_.push_back({active_, node_of(first_lane(active_)), kNever});
}

/// Issues the common steps before `end`.
void Lockstep::issue_common(std::size_t end, IssueObserver& observer) {
  std::size_t access = 0;
  for (std::size_t i = 0; i < end; ++i) {
    const Step& step = common_[i];
    if (step.bytes != 0) {
      observer.requested(step.number, common_.request(i, access++, active_));
      continue;
    }
    if (step.number != kNoPass) observer.passed(step.number, active_);
    enter(common_frames_, step);
    common_node_ = static_cast<std::uint32_t>(step.address);
  }
}

void Lockstep::advance_common(IssueObserver& observer) {
  auto end = common_.length();
  for (auto rest = active_; rest != 0; rest &= rest - 1) {
    end = std::min(end, common_.length(first_lane(rest)));
  }
  // It is not known yet what belongs to the last piece of all lanes.
  const auto is_piece = [&](std::size_t step) { return common_[step].bytes == 0; };
  while (end > 0 && !is_piece(end - 1)) --end;
  has_flow_ = true;
  for (; common_scanned_ < common_.length(); ++common_scanned_) {
    if (!is_piece(common_scanned_)) continue;
    const auto node = static_cast<std::uint32_t>(common_[common_scanned_].address);
    flow_.add(common_scanned_node_, node);
    common_scanned_node_ = node;
  }
  if (end > 0) {
    issue_common(--end, observer);
    at_start_ = false;
    common_.drop(end);
    common_scanned_ -= end;
  }
  longest_ = std::max(kLong, 2 * (common_.length() + (at_start_ ? 1 : 0)));
}

void Lockstep::advance(IssueObserver& observer) {
  is_solved_ = false;
  if (is_common_ && (ended_ & active_) == 0) return advance_common(observer);
  if (is_common_) separate();
  run(observer, false);
  scan(false);
  std::size_t longest = 0;
  for (auto rest = active_; rest != 0; rest &= rest - 1) {
    Lane& lane = lanes_[first_lane(rest)];
    lane.steps.erase(lane.steps.begin(), lane.steps.begin() + static_cast<std::ptrdiff_t>(lane.at));
    lane.last_pass -= std::min(lane.last_pass, lane.at);
    lane.scanned -= lane.at;
    lane.at = 0;
    longest = std::max(longest, lane.steps.size());
  }
  longest_ = std::max(kLong, 2 * longest);
}

void Lockstep::close(IssueObserver& observer) {
  is_solved_ = false;
  for (auto rest = is_common_ ? active_ : 0; rest != 0; rest &= rest - 1) {
    if (common_.length(first_lane(rest)) == common_.length()) continue;
    separate();
    break;
  }
  if (is_common_) {
    issue_common(common_.length(), observer);
  } else {
    run(observer, true);
  }
  longest_ = kLong;
  forget();
}

void Lockstep::meet(std::uint32_t mask, IssueObserver& observer) {
  // A lane that met others before it ended may have ended behind this place.
  const bool all = (running() & ~mask) == 0 && (ended_ & met_) == 0;
  if (all) return close(observer);
  met_ |= mask;
}

std::uint32_t Lockstep::node_of(unsigned lane) const {
  const auto& at = lanes_[lane];
  return at.at < at.steps.size() ? static_cast<std::uint32_t>(at.steps[at.at].address)
                                 : ControlFlow::kEnd;
}

/// True when it is known where the lanes go behind their piece.
bool Lockstep::is_known(std::uint32_t mask, bool all) const {
  if (all) return true;
  for (auto rest = mask & ~ended_; rest != 0; rest &= rest - 1) {
    const auto& lane = lanes_[first_lane(rest)];
    if (lane.at >= lane.last_pass) return false;
  }
  return true;
}

void Lockstep::run(IssueObserver& observer, bool all) {
  while (!groups_.empty()) {
    Group& group = groups_.back();
    if (group.mask == 0 || group.node == group.until || group.node == ControlFlow::kEnd) {
      leave_group();
      continue;
    }
    if (!is_known(group.mask, all)) return;
    issue(group, observer);
    const auto branch = branch_of(group.mask);
    if (part(group, all) && branch != kNoPass) observer.parted(branch);
  }
}

/// The group below continues, without the lanes that have ended on another way.
void Lockstep::leave_group() {
  groups_.pop_back();
  if (groups_.empty()) return;
  Group& group = groups_.back();
  for (auto rest = group.mask; rest != 0; rest &= rest - 1) {
    if (node_of(first_lane(rest)) != group.node) group.mask &= ~(1U << first_lane(rest));
  }
}

/// A piece of a function that calls one of its own, or of one that was called.
void Lockstep::enter(Frames& frames, const Step& piece) {
  const auto depth = static_cast<std::uint32_t>(piece.address >> 32);
  while (!frames.empty() && frames.back().depth > depth) frames.pop_back();
  if (frames.empty() || frames.back().depth < depth) frames.push_back({depth, kNoPass});
  frames.back().pass = piece.number;
}

/// The piece behind which the lanes go on: the last one of their function, which may have called
/// others since.
std::uint32_t Lockstep::branch_of(std::uint32_t mask) const {
  std::uint32_t depth = 0;
  const Frames* frames = nullptr;
  for (auto rest = mask; rest != 0; rest &= rest - 1) {
    const auto& lane = lanes_[first_lane(rest)];
    if (lane.at >= lane.steps.size()) continue;
    depth = std::max(depth, static_cast<std::uint32_t>(lane.steps[lane.at].address >> 32));
    frames = &lane.frames;
  }
  if (frames == nullptr) return kNoPass;
  const auto found = std::find_if(frames->rbegin(), frames->rend(),
                                  [&](const Frame& frame) { return frame.depth <= depth; });
  return found == frames->rend() ? kNoPass : found->pass;
}

/// Runs the group's piece of code: accesses of one site side by side are one request.
void Lockstep::issue(const Group& group, IssueObserver& observer) {
  const Lane& leader = lanes_[first_lane(group.mask)];
  const auto pass = leader.steps[leader.at].number;
  if (pass != kNoPass) observer.passed(pass, group.mask);
  for (auto rest = group.mask; rest != 0; rest &= rest - 1) {
    Lane& lane = lanes_[first_lane(rest)];
    if (group.node != ControlFlow::kStart) enter(lane.frames, lane.steps[lane.at]);
    ++lane.at;
  }
  const auto waiting = [&](unsigned lane) -> const Step* {
    const auto& at = lanes_[lane];
    if (at.at >= at.steps.size() || at.steps[at.at].bytes == 0) return nullptr;
    return &at.steps[at.at];
  };
  for (auto open = group.mask; open != 0;) {
    const Step* first = waiting(first_lane(open));
    if (first == nullptr) {
      open &= open - 1;
      continue;
    }
    Request request;
    request.bytes = first->bytes;
    const auto site = first->number;
    for (auto rest = open; rest != 0; rest &= rest - 1) {
      const auto lane = first_lane(rest);
      const Step* step = waiting(lane);
      if (step == nullptr || step->number != site || step->bytes != request.bytes) continue;
      request.mask |= 1U << lane;
      request.addresses[lane] = step->address;
      ++lanes_[lane].at;
    }
    observer.requested(site, request);
  }
}

/// The lanes go on: together, or in groups that meet again. True: in groups.
bool Lockstep::part(Group& group, bool all) {
  const auto next = node_of(first_lane(group.mask));
  std::uint32_t same = 0;
  for (auto rest = group.mask; rest != 0; rest &= rest - 1) {
    if (node_of(first_lane(rest)) == next) same |= 1U << first_lane(rest);
  }
  if (same == group.mask) {
    group.node = next;
    return false;
  }
  if (!is_solved_) solve(all);
  const auto meets = flow_.meeting_point(group.node);
  group.node = meets;
  auto open = group.mask;  // the group itself may move when others are pushed
  while (open != 0) {
    const auto node = node_of(first_lane(open));
    std::uint32_t mask = 0;
    for (auto rest = open; rest != 0; rest &= rest - 1) {
      if (node_of(first_lane(rest)) == node) mask |= 1U << first_lane(rest);
    }
    open &= ~mask;
    if (node != meets) groups_.push_back({mask, node, meets});
  }
  return true;
}

/// Adds the ways that are known to the graph.
void Lockstep::scan(bool all) {
  has_flow_ = true;
  for (auto rest = active_; rest != 0; rest &= rest - 1) {
    const auto number = first_lane(rest);
    Lane& lane = lanes_[number];
    const bool ends = all || (ended_ >> number & 1U) != 0;
    for (; lane.scanned < lane.steps.size(); ++lane.scanned) {
      const Step& step = lane.steps[lane.scanned];
      if (step.bytes != 0) continue;
      const auto node = static_cast<std::uint32_t>(step.address);
      if (node != ControlFlow::kStart) flow_.add(lane.scanned_node, node);
      lane.scanned_node = node;
    }
    if (ends) flow_.add(lane.scanned_node, ControlFlow::kEnd);
  }
}

void Lockstep::solve(bool all) {
  scan(all);
  std::vector<std::uint32_t> unfinished;
  for (auto rest = all ? 0 : running(); rest != 0; rest &= rest - 1) {
    unfinished.push_back(lanes_[first_lane(rest)].scanned_node);
  }
  flow_.solve(unfinished);
  is_solved_ = true;
}

}  // namespace triptych::cuda::emulation
