// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/algorithms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/base/error.h"

namespace triptych::parallel {
namespace {

BufferRange data(const Range& range) { return {Memory::Data, range}; }

/// The pieces that a collective is done in, one after the other: each of up to segment_elements for
/// every rank.
std::vector<Range> segments(const CollectiveShape& shape) {
  const std::int64_t longest = shape.segment_elements * shape.world_size;
  const std::int64_t count = std::max<std::int64_t>(1, (shape.elements + longest - 1) / longest);
  std::vector<Range> list;
  for (std::int64_t i = 0; i < count; ++i)
    list.push_back({i * longest, std::min((i + 1) * longest, shape.elements)});
  return list;
}

/// The steps of one rank for one piece of the buffer.
class RankSteps {
 public:
  explicit RankSteps(const CollectiveShape& shape)
      : n_(shape.world_size), rank_(shape.rank), root_(shape.root) {}

  /// ScheduleStep t: each rank sends a chunk to the next one, and adds the chunk of the previous
  /// one. The sum of chunk c starts at rank c + 1 and grows on its way round to rank c.
  void ring_reduce(const Range& piece) {
    for (int t = 1; t < n_; ++t) {
      steps_.send(next(), data(chunk(piece, rank_ - t)));
      steps_.receive_add(previous(), data(chunk(piece, rank_ - t - 1)));
    }
  }
  /// Each rank begins with its own chunk and passes on the one that it received last.
  void ring_gather(const Range& piece) {
    for (int t = 1; t < n_; ++t) {
      steps_.send(next(), data(chunk(piece, rank_ - t + 1)));
      steps_.receive(previous(), data(chunk(piece, rank_ - t)));
    }
  }

  /// Everybody offers everybody's chunk to its owner, who adds them up in rank order. Parts before
  /// its own are summed separately.
  void direct_reduce(const Range& piece) {
    for (int i = 1; i < n_; ++i) {
      const int owner = (rank_ + i) % n_;
      steps_.send(owner, data(chunk(piece, owner)));
    }
    const BufferRange own = data(chunk(piece, rank_));
    const BufferRange before = {Memory::Scratch, {0, own.range.size()}};
    for (int peer = 0; peer < n_; ++peer) {
      if (peer == rank_ && rank_ > 1) steps_.add(own, before);
      if (peer == rank_) continue;
      // One rank before it is as good as added to the own part: an addition has no order.
      const bool apart = peer < rank_ && rank_ > 1;
      if (apart && peer == 0) {
        steps_.receive(peer, before);
      } else {
        steps_.receive_add(peer, apart ? before : own);
      }
    }
  }
  void direct_gather(const Range& piece) {
    for (int i = 1; i < n_; ++i) steps_.send((rank_ + i) % n_, data(chunk(piece, rank_)));
    for (int i = 1; i < n_; ++i) {
      const int owner = (rank_ + n_ - i) % n_;
      steps_.receive(owner, data(chunk(piece, owner)));
    }
  }

  /// Pairs at distance 1, 2, 4 … split the range that both hold: each owns a half and adds the
  /// other's. Then the same way back. Ranks beyond the largest power of two give all they have to
  /// one within before, and get the result after.
  void halving_doubling(const Range& piece) {
    const int paired = static_cast<int>(std::bit_floor(static_cast<unsigned>(n_)));
    if (rank_ >= paired) {
      steps_.send(rank_ - paired, data(piece));
      steps_.receive(rank_ - paired, data(piece));
      return;
    }
    const bool has_extra = rank_ + paired < n_;
    if (has_extra) steps_.receive_add(rank_ + paired, data(piece));
    std::vector<std::array<Range, 2>> halves;  // kept, given away
    Range held = piece;
    for (int distance = 1; distance < paired; distance *= 2) {
      const int upper = (rank_ & distance) != 0 ? 1 : 0;
      halves.push_back({part_of(held, upper, 2), part_of(held, 1 - upper, 2)});
      held = halves.back()[0];
      steps_.send(rank_ ^ distance, data(halves.back()[1]));
      steps_.receive_add(rank_ ^ distance, data(held));
    }
    for (int distance = paired / 2; distance > 0; distance /= 2) {
      steps_.send(rank_ ^ distance, data(halves.back()[0]));
      steps_.receive(rank_ ^ distance, data(halves.back()[1]));
      halves.pop_back();
    }
    if (has_extra) steps_.send(rank_ + paired, data(piece));
  }

  /// Binomial tree: rank r, counted from the root, adds those at r + 1, r + 2, r + 4 … below it.
  void tree_reduce(const Range& piece) {
    for (int distance = 1; distance < n_; distance *= 2) {
      if ((from_root() & distance) != 0) {
        steps_.send(at(from_root() - distance), data(piece));
        return;
      }
      if (from_root() + distance < n_) steps_.receive_add(at(from_root() + distance), data(piece));
    }
  }
  /// The same tree, downwards. A rank sends to the largest subtree first, and to the next one when
  /// that is through: at once, they would share the rank's bandwidth, and the largest would begin
  /// late.
  void tree_broadcast(const Range& piece) {
    int distance = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n_)));
    if (from_root() != 0) {
      distance = from_root() & -from_root();
      steps_.receive(at(from_root() - distance), data(piece));
    }
    for (distance /= 2; distance > 0; distance /= 2) {
      if (from_root() + distance >= n_) continue;
      steps_.wait_for_sends();
      steps_.send(at(from_root() + distance), data(piece));
    }
  }

  Schedule finish() { return steps_.finish(); }

 private:
  int next() const { return (rank_ + 1) % n_; }
  int previous() const { return (rank_ + n_ - 1) % n_; }
  int from_root() const { return (rank_ - root_ + n_) % n_; }
  int at(int place) const { return (place + root_) % n_; }
  Range chunk(const Range& piece, int number) const {
    return part_of(piece, ((number % n_) + n_) % n_, n_);
  }

  int n_, rank_, root_;
  ScheduleBuilder steps_;
};

void all_reduce(Algorithm algorithm, const Range& piece, RankSteps& steps) {
  switch (algorithm) {
    case Algorithm::Ring:
      steps.ring_reduce(piece);
      return steps.ring_gather(piece);
    case Algorithm::Direct:
      steps.direct_reduce(piece);
      return steps.direct_gather(piece);
    case Algorithm::HalvingDoubling:
      return steps.halving_doubling(piece);
    case Algorithm::Tree:
      steps.tree_reduce(piece);
      return steps.tree_broadcast(piece);
    case Algorithm::Library:
      break;  // has no schedule
  }
}

constexpr std::array kAlgorithmNames = {"ring", "direct", "halving-doubling", "tree", "library"};
constexpr std::array kAllReduce = {Algorithm::Direct, Algorithm::Ring, Algorithm::HalvingDoubling,
                                   Algorithm::Tree};
constexpr std::array kChunked = {Algorithm::Direct, Algorithm::Ring};
constexpr std::array kBroadcast = {Algorithm::Tree};

void validate(Collective collective, Algorithm algorithm, const CollectiveShape& shape) {
  if (shape.world_size < 1 || shape.rank < 0 || shape.rank >= shape.world_size ||
      shape.elements < 0 || shape.root < 0 || shape.root >= shape.world_size ||
      shape.segment_elements < 1) {
    throw InvalidArgument(fmt::format(
        "{} of {} elements in segments of {}, as rank {} of {} from root {}: ranks count from 0, "
        "and sizes are positive",
        to_string(collective), shape.elements, shape.segment_elements, shape.rank, shape.world_size,
        shape.root));
  }
  const auto list = algorithms_of(collective);
  if (std::ranges::find(list, algorithm) != list.end()) return;
  std::vector<std::string_view> names;
  for (const auto one : list) names.push_back(to_string(one));
  throw InvalidArgument(fmt::format("{} has no algorithm \"{}\"; choose from: {}",
                                    to_string(collective), to_string(algorithm),
                                    fmt::join(names, ", ")));
}

}  // namespace

std::string_view to_string(Collective collective) {
  constexpr std::array names = {"all-reduce", "reduce-scatter", "all-gather", "broadcast"};
  return names.at(static_cast<std::size_t>(collective));
}

std::string_view to_string(Algorithm algorithm) {
  return kAlgorithmNames.at(static_cast<std::size_t>(algorithm));
}

Algorithm algorithm_from_string(std::string_view name) {
  const auto found = std::ranges::find(kAlgorithmNames, name);
  if (found != kAlgorithmNames.end())
    return static_cast<Algorithm>(found - kAlgorithmNames.begin());
  throw InvalidArgument(
      fmt::format("no algorithm \"{}\"; choose from: {}", name, fmt::join(kAlgorithmNames, ", ")));
}

std::span<const Algorithm> algorithms_of(Collective collective) {
  if (collective == Collective::AllReduce) return kAllReduce;
  if (collective == Collective::Broadcast) return kBroadcast;
  return kChunked;
}

Schedule make_schedule(Collective collective, Algorithm algorithm, const CollectiveShape& shape) {
  validate(collective, algorithm, shape);
  RankSteps steps(shape);
  const Range whole = {0, shape.elements};
  switch (collective) {
    case Collective::AllReduce:
      for (const auto& piece : segments(shape)) all_reduce(algorithm, piece, steps);
      break;
    case Collective::Broadcast:
      for (const auto& piece : segments(shape)) steps.tree_broadcast(piece);
      break;
    case Collective::ReduceScatter:
      algorithm == Algorithm::Ring ? steps.ring_reduce(whole) : steps.direct_reduce(whole);
      break;
    case Collective::AllGather:
      algorithm == Algorithm::Ring ? steps.ring_gather(whole) : steps.direct_gather(whole);
      break;
  }
  return steps.finish();
}

}  // namespace triptych::parallel
