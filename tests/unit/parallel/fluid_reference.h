// A second simulation of messages that share links at max-min fair rates, for tests of price(): as
// plain as it can be, with nothing of the first but the schedules and the links. Every rate is
// computed again at every event.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "parallel/collectives/interconnect.h"
#include "parallel/collectives/schedule.h"

namespace triptych::parallel::test {

class FluidReference {
 public:
  FluidReference(std::span<const Schedule> schedules, double element_bytes, const Interconnect& net)
      : schedules_(schedules), element_bytes_(element_bytes), net_(net), at_(schedules.size(), 0) {}

  double seconds() {
    double now = 0;
    for (;;) {
      while (ranks_go_on(now)) {
      }
      const auto rates = fair_rates(now);
      double next = kNever;
      for (std::size_t i = 0; i < messages_.size(); ++i) {
        const auto& m = messages_[i];
        if (m.arrived) continue;
        if (now < m.flows_from) next = std::min(next, m.flows_from);
        if (rates[i] > 0) next = std::min(next, now + m.left / rates[i]);
      }
      if (next == kNever) return now;
      for (std::size_t i = 0; i < messages_.size(); ++i) {
        auto& m = messages_[i];
        if (m.arrived || rates[i] == 0) continue;
        m.left -= rates[i] * (next - now);
        m.arrived = m.left < 1e-6 * element_bytes_;
      }
      now = next;
    }
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Message {
    int from, to;
    double flows_from, left;
    bool arrived = false, taken = false;
  };

  bool ranks_go_on(double now) {
    bool any = false;
    for (std::size_t r = 0; r < at_.size(); ++r) {
      if (at_[r] == schedules_[r].steps.size() || !can_do(static_cast<int>(r))) continue;
      do_step(static_cast<int>(r), now);
      any = true;
    }
    return any;
  }

  const ScheduleStep& step(int r) const {
    return schedules_[static_cast<std::size_t>(r)].steps[at_[static_cast<std::size_t>(r)]];
  }

  /// The first message from one rank to the other that was not taken yet. -1: none was sent.
  int first_between(int from, int to) const {
    for (std::size_t i = 0; i < messages_.size(); ++i)
      if (messages_[i].from == from && messages_[i].to == to && !messages_[i].taken)
        return static_cast<int>(i);
    return -1;
  }

  bool can_do(int r) const {
    const auto& s = step(r);
    if (s.kind == ScheduleStep::Kind::Wait)
      return messages_[static_cast<std::size_t>(sent_.at({r, s.send}))].taken;
    if (s.kind != ScheduleStep::Kind::Receive && s.kind != ScheduleStep::Kind::ReceiveAdd)
      return true;
    const int first = first_between(s.peer, r);
    return first >= 0 && messages_[static_cast<std::size_t>(first)].arrived;
  }

  void do_step(int r, double now) {
    const auto& s = step(r);
    if (s.kind == ScheduleStep::Kind::Send) {
      double latency = 0;
      for (const int link : net_.path(r, s.peer))
        latency += net_.links()[static_cast<std::size_t>(link)].alpha_s;
      sent_[{r, static_cast<int>(at_[static_cast<std::size_t>(r)])}] =
          static_cast<int>(messages_.size());
      messages_.push_back(
          {r, s.peer, now + latency, element_bytes_ * static_cast<double>(s.place.range.size())});
    }
    if (s.kind == ScheduleStep::Kind::Receive || s.kind == ScheduleStep::Kind::ReceiveAdd)
      messages_[static_cast<std::size_t>(first_between(s.peer, r))].taken = true;
    ++at_[static_cast<std::size_t>(r)];
  }

  /// True when everything has arrived that its sender sent to its receiver before.
  bool is_next(std::size_t i) const {
    for (std::size_t earlier = 0; earlier < i; ++earlier) {
      const auto& other = messages_[earlier];
      if (other.from == messages_[i].from && other.to == messages_[i].to && !other.arrived)
        return false;
    }
    return true;
  }

  /// Raises the rates of all messages together, and stops those on a link that is full.
  std::vector<double> fair_rates(double now) const {
    std::vector<double> rates(messages_.size(), 0);
    std::vector<double> spare;
    for (const auto& link : net_.links()) spare.push_back(link.bytes_per_s);
    std::vector<std::size_t> rising;
    for (std::size_t i = 0; i < messages_.size(); ++i)
      if (!messages_[i].arrived && messages_[i].flows_from <= now && is_next(i))
        rising.push_back(i);
    while (!rising.empty()) {
      std::vector<int> users(spare.size(), 0);
      for (const auto i : rising)
        for (const int link : path(i)) ++users[static_cast<std::size_t>(link)];
      double rise = kNever;
      for (std::size_t l = 0; l < spare.size(); ++l)
        if (users[l] > 0) rise = std::min(rise, spare[l] / users[l]);
      for (const auto i : rising) rates[i] += rise;
      for (std::size_t l = 0; l < spare.size(); ++l) spare[l] -= rise * users[l];
      std::erase_if(rising, [&](std::size_t i) {
        return std::ranges::any_of(path(i), [&](int link) {
          const auto l = static_cast<std::size_t>(link);
          return spare[l] < 1e-9 * net_.links()[l].bytes_per_s;
        });
      });
    }
    return rates;
  }

  const std::vector<int>& path(std::size_t i) const {
    return net_.path(messages_[i].from, messages_[i].to);
  }

  std::span<const Schedule> schedules_;
  double element_bytes_;
  const Interconnect& net_;
  std::vector<std::size_t> at_;
  std::vector<Message> messages_;
  std::map<std::pair<int, int>, int> sent_;  // by rank and number of its step
};

}  // namespace triptych::parallel::test
