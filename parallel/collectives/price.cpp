// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/price.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/base/error.h"

namespace triptych::parallel {
namespace {

/// A rank at its next step, with its own clock.
struct PricedRank {
  std::size_t at = 0;
  std::size_t delays = 0;                            ///< that have passed
  double now = 0;                                    ///< of its communication
  double computed = 0;                               ///< the end of its last computation
  std::deque<std::pair<std::size_t, double>> gates;  ///< a step, and when it may begin
  std::map<int, std::deque<double>> arrivals;        ///< from a peer, in order
  std::map<int, double> taken;                       ///< by number of a send: when its peer had it
  std::map<int, std::deque<int>> untaken;            ///< to a peer: numbers of sends
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
        free_s_(net.links().size(), 0) {
    price_.busy_s.resize(net.links().size(), 0);
    price_.computations.resize(ranks_.size());
    price_.steps.resize(ranks_.size());
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) pass_delays(r);
  }

  /// Always the rank whose clock is behind goes on, so that links serve messages in order of time.
  Price run() {
    for (;;) {
      int next = -1;
      for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
        if (can_go_on(r) && (next < 0 || ready_at(r) < ready_at(next))) next = r;
      }
      if (next < 0) break;
      advance(next);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      TRIPTYCH_ASSERT(ranks_[r].at == schedules_[r].steps.size());
      price_.rank_s.push_back(std::max(ranks_[r].now, ranks_[r].computed));
      price_.seconds = std::max(price_.seconds, price_.rank_s.back());
    }
    std::ranges::stable_sort(price_.flights, {}, &Flight::start_s);
    return std::move(price_);
  }

 private:
  PricedRank& rank(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  const Step& step(int r) { return schedules_[static_cast<std::size_t>(r)].steps[rank(r).at]; }
  double bytes(const Step& step) const {
    return static_cast<double>(step.place.range.elements() * element_bytes_);
  }

  bool can_go_on(int r) {
    if (rank(r).at == schedules_[static_cast<std::size_t>(r)].steps.size()) return false;
    const Step& next = step(r);
    if (next.kind == Step::Kind::Receive || next.kind == Step::Kind::ReceiveAdd)
      return !rank(r).arrivals[next.peer].empty();
    return next.kind != Step::Kind::Wait || rank(r).taken.contains(next.send);
  }

  double ready_at(int r) {
    const Step& next = step(r);
    const double free = std::max(rank(r).now, gate(r));
    if (next.kind == Step::Kind::Receive || next.kind == Step::Kind::ReceiveAdd)
      return std::max(free, rank(r).arrivals[next.peer].front());
    if (next.kind == Step::Kind::Wait) return std::max(free, rank(r).taken[next.send]);
    return free;
  }

  /// When the computations that the next step waits for are done.
  double gate(int r) {
    double open = 0;
    for (const auto& [step, time] : rank(r).gates)
      if (step <= rank(r).at) open = time;
    return open;
  }

  void advance(int r) {
    const Step& done = step(r);
    const double start = std::max(rank(r).now, gate(r));
    rank(r).now = ready_at(r);
    if (done.kind == Step::Kind::Send) send(r, done);
    if (done.kind == Step::Kind::Receive || done.kind == Step::Kind::ReceiveAdd) {
      rank(r).arrivals[done.peer].pop_front();
      auto& sends = rank(done.peer).untaken[r];
      rank(done.peer).taken[sends.front()] = rank(r).now;
      sends.pop_front();
    }
    const bool adds = done.kind == Step::Kind::ReceiveAdd || done.kind == Step::Kind::Add;
    if (adds && add_bytes_per_s_ > 0) rank(r).now += bytes(done) / add_bytes_per_s_;
    price_.steps[static_cast<std::size_t>(r)].push_back({start, rank(r).now});
    ++rank(r).at;
    pass_delays(r);
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

  void send(int r, const Step& message) {
    const auto& path = net_.path(r, message.peer);
    double start = rank(r).now, latency = 0, narrowest = 0;
    for (const int link : path) {
      const auto& wire = net_.links()[static_cast<std::size_t>(link)];
      start = std::max(start, free_s_[static_cast<std::size_t>(link)]);
      latency += wire.alpha_s;
      narrowest = narrowest == 0 ? wire.bytes_per_s : std::min(narrowest, wire.bytes_per_s);
    }
    const double time = latency + (narrowest > 0 ? bytes(message) / narrowest : 0);
    for (const int link : path) {
      free_s_[static_cast<std::size_t>(link)] = start + time;
      price_.busy_s[static_cast<std::size_t>(link)] += time;
    }
    rank(message.peer).arrivals[r].push_back(start + time);
    rank(r).untaken[message.peer].push_back(static_cast<int>(rank(r).at));
    price_.flights.push_back(
        {r, message.peer, static_cast<std::int64_t>(bytes(message)), start, start + time});
  }

  std::span<const Schedule> schedules_;
  std::span<const std::vector<Delay>> delays_;
  std::int64_t element_bytes_;
  const Interconnect& net_;
  double add_bytes_per_s_;
  std::vector<PricedRank> ranks_;
  std::vector<double> free_s_;  // by link
  Price price_;
};

}  // namespace

Price price(std::span<const Schedule> schedules, std::int64_t element_bytes,
            const Interconnect& interconnect, double add_bytes_per_s,
            std::span<const std::vector<Delay>> delays) {
  return Clockwork(schedules, element_bytes, interconnect, add_bytes_per_s, delays).run();
}

}  // namespace triptych::parallel
