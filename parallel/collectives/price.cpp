// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/price.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "parallel/collectives/flows.h"

namespace triptych::parallel {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Events this close, relative to the time, are one that rounding has separated.
constexpr double kTogether = 1e-13;

struct Message {
  int from = 0, to = 0;
  double bytes = 0;
  double sent = 0;
  double arrived = kNever;
  double taken = kNever;  ///< when the receiver resumed
};

/// Messages of one rank to another, one after another.
struct Stream {
  std::deque<int> untaken;  ///< by the receiver, in the order of sending
  std::deque<int> ready;    ///< to flow, behind the one that does
  bool flows = false;
};

/// A rank at its next step, with its own clock.
struct Rank {
  std::size_t at = 0;
  std::size_t delays = 0;                            ///< that have passed
  double now = 0;                                    ///< of its communication
  double computed = 0;                               ///< the end of its last computation
  bool asleep = false;                               ///< until a message arrives or is received
  std::deque<std::pair<std::size_t, double>> gates;  ///< a step, and when it may begin
  std::map<int, Stream> incoming;                    ///< by peer
  std::vector<int> sent;                             ///< the message of each step. -1: none
};

class Clockwork {
 public:
  Clockwork(std::span<const Schedule> schedules, std::int64_t element_bytes,
            const Interconnect& net, double add_bytes_per_s,
            std::span<const std::vector<Delay>> delays)
      : schedules_(schedules),
        delays_(delays),
        element_bytes_(element_bytes),
        net_(net),
        add_bytes_per_s_(add_bytes_per_s),
        ranks_(schedules.size()),
        flows_(net),
        carried_(net.links().size(), 0),
        carries_since_(net.links().size(), 0) {
    price_.busy_s.resize(net.links().size(), 0);
    price_.computations.resize(ranks_.size());
    price_.steps.resize(ranks_.size());
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      rank(r).sent.assign(steps(r).size(), -1);
      price_.steps[static_cast<std::size_t>(r)].reserve(steps(r).size());
      pass_delays(r);
      events_.push({0, Event::Kind::RankGoesOn, r});
    }
  }

  /// Ranks go on, messages begin to flow and arrive, all in order of time. Rates change when all
  /// that happens at one time has happened.
  Price run() {
    for (;;) {
      const auto arrival = flows_.first_end();
      const double next = std::min(arrival.time, events_.empty() ? kNever : events_.top().time);
      if (next == kNever) break;
      const double together = next * (1 + kTogether);
      double now = next;
      for (;;) {
        const auto end = flows_.first_end();
        const double event = events_.empty() ? kNever : events_.top().time;
        if (std::min(end.time, event) > together) break;
        now = std::max(now, std::min(end.time, event));
        if (end.time <= event) {
          arrive(end);
        } else {
          handle(events_.top());
        }
      }
      flows_.settle(now);
    }
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      TRIPTYCH_ASSERT(rank(r).at == steps(r).size());
      price_.rank_s.push_back(std::max(rank(r).now, rank(r).computed));
      price_.seconds = std::max(price_.seconds, price_.rank_s.back());
    }
    std::ranges::stable_sort(price_.flights, {}, &Flight::start_s);
    return std::move(price_);
  }

 private:
  struct Event {
    enum class Kind : std::uint8_t { RankGoesOn, MessageFlows };
    double time = 0;
    Kind kind = Kind::RankGoesOn;
    int number = 0;  ///< of the rank or the message
    bool operator>(const Event& other) const {
      return std::tie(time, kind, number) > std::tie(other.time, other.kind, other.number);
    }
  };

  Rank& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  Message& message(int m) { return messages_[static_cast<std::size_t>(m)]; }
  const std::vector<ScheduleStep>& steps(int r) const {
    return schedules_[static_cast<std::size_t>(r)].steps;
  }
  double bytes(const ScheduleStep& step) const {
    return static_cast<double>(step.place.range.size() * element_bytes_);
  }

  void handle(const Event& event) {
    const auto [time, kind, number] = event;
    events_.pop();
    if (kind == Event::Kind::RankGoesOn) return go_on(number, time);
    auto& stream = stream_of(number);
    if (stream.flows) return stream.ready.push_back(number);
    stream.flows = true;
    begin(number, time);
  }

  Stream& stream_of(int number) { return rank(message(number).to).incoming[message(number).from]; }

  void begin(int number, double time) {
    const auto& begun = message(number);
    const auto flow =
        static_cast<std::size_t>(flows_.begin(net_.path(begun.from, begun.to), begun.bytes, time));
    message_of_flow_.resize(std::max(message_of_flow_.size(), flow + 1));
    message_of_flow_[flow] = number;
  }

  void wake(int r, double time) {
    if (!std::exchange(rank(r).asleep, false)) return;
    events_.push({time, Event::Kind::RankGoesOn, r});
  }

  /// Does the steps of a rank that can be done at this time.
  void go_on(int r, double time) {
    auto& own = rank(r);
    while (own.at < steps(r).size()) {
      const ScheduleStep& step = steps(r)[own.at];
      const double start = std::max(own.now, gate(own));
      const double ready = std::max(start, ready_at(r, step));
      if (ready == kNever) {
        own.asleep = true;
        return;
      }
      if (ready > time) return events_.push({ready, Event::Kind::RankGoesOn, r});
      do_step(r, step, start, ready);
    }
  }

  /// Time at which the condition of the step holds. Never, as far as is known now.
  double ready_at(int r, const ScheduleStep& step) {
    if (step.kind == ScheduleStep::Kind::Wait)
      return message(rank(r).sent[static_cast<std::size_t>(step.send)]).taken;
    if (step.kind != ScheduleStep::Kind::Receive && step.kind != ScheduleStep::Kind::ReceiveAdd)
      return 0;
    const auto& queue = rank(r).incoming[step.peer].untaken;
    return queue.empty() ? kNever : message(queue.front()).arrived;
  }

  void do_step(int r, const ScheduleStep& step, double start, double ready) {
    auto& own = rank(r);
    own.now = ready;
    if (step.kind == ScheduleStep::Kind::Send) send(r, step);
    if (step.kind == ScheduleStep::Kind::Receive || step.kind == ScheduleStep::Kind::ReceiveAdd) {
      auto& queue = own.incoming[step.peer].untaken;
      message(queue.front()).taken = ready;
      queue.pop_front();
      wake(step.peer, ready);
    }
    const bool adds =
        step.kind == ScheduleStep::Kind::ReceiveAdd || step.kind == ScheduleStep::Kind::Add;
    if (adds && add_bytes_per_s_ > 0) own.now += bytes(step) / add_bytes_per_s_;
    price_.steps[static_cast<std::size_t>(r)].push_back({start, own.now});
    ++own.at;
    pass_delays(r);
  }

  /// When the computations that the next step waits for are done.
  static double gate(const Rank& own) {
    double open = 0;
    for (const auto& [step, time] : own.gates)
      if (step <= own.at) open = time;
    return open;
  }

  void pass_delays(int r) {
    if (delays_.empty()) return;
    const auto& list = delays_[static_cast<std::size_t>(r)];
    auto& own = rank(r);
    for (; own.delays < list.size() && list[own.delays].after <= own.at; ++own.delays) {
      const auto& delay = list[own.delays];
      const auto& done = price_.steps[static_cast<std::size_t>(r)];
      const double start =
          std::max(own.computed, delay.after == 0 ? 0 : done[delay.after - 1].end_s);
      own.computed = start + delay.seconds;
      own.gates.emplace_back(delay.before, own.computed);
      price_.computations[static_cast<std::size_t>(r)].push_back({start, own.computed});
    }
    while (own.gates.size() > 1 && own.gates[1].first <= own.at) own.gates.pop_front();
  }

  void send(int r, const ScheduleStep& step) {
    const int number = static_cast<int>(messages_.size());
    const double now = rank(r).now;
    messages_.push_back({.from = r, .to = step.peer, .bytes = bytes(step), .sent = now});
    rank(r).sent[rank(r).at] = number;
    rank(step.peer).incoming[r].untaken.push_back(number);
    double latency = 0;
    for (const int link : net_.path(r, step.peer)) {
      const auto l = static_cast<std::size_t>(link);
      latency += net_.links()[l].alpha_s;
      if (carried_[l]++ == 0) carries_since_[l] = now;
    }
    events_.push({now + latency, Event::Kind::MessageFlows, number});
  }

  void arrive(const FlowNetwork::End& end) {
    const int number = message_of_flow_[static_cast<std::size_t>(end.flow)];
    const auto& own = message(number);
    message(number).arrived = end.time;
    flows_.remove(end.flow);
    auto& stream = stream_of(number);
    stream.flows = !stream.ready.empty();
    if (stream.flows) {
      begin(stream.ready.front(), end.time);
      stream.ready.pop_front();
    }
    for (const int link : net_.path(own.from, own.to)) {
      const auto l = static_cast<std::size_t>(link);
      if (--carried_[l] == 0) price_.busy_s[l] += end.time - carries_since_[l];
    }
    price_.flights.push_back(
        {own.from, own.to, static_cast<std::int64_t>(own.bytes), own.sent, end.time});
    wake(own.to, end.time);
  }

  std::span<const Schedule> schedules_;
  std::span<const std::vector<Delay>> delays_;
  std::int64_t element_bytes_;
  const Interconnect& net_;
  double add_bytes_per_s_;
  std::vector<Rank> ranks_;
  std::vector<Message> messages_;
  FlowNetwork flows_;
  std::vector<int> message_of_flow_;
  std::vector<int> carried_;           // messages by link
  std::vector<double> carries_since_;  // by link
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Price price_;
};

}  // namespace

Price price(std::span<const Schedule> schedules, std::int64_t element_bytes,
            const Interconnect& interconnect, double add_bytes_per_s,
            std::span<const std::vector<Delay>> delays) {
  return Clockwork(schedules, element_bytes, interconnect, add_bytes_per_s, delays).run();
}

}  // namespace triptych::parallel
