// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/components.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <queue>

#include "core/base/error.h"

namespace triptych::segmentation {
namespace {

struct Step {
  std::int64_t y, x;
};

// The four neighbours come first.
constexpr std::array<Step, 8> kSteps = {
    {{-1, 0}, {0, -1}, {0, 1}, {1, 0}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}}};

void require_size(std::size_t pixels, Size size) {
  if (static_cast<std::int64_t>(pixels) == size.pixels()) return;
  throw_invalid("components",
                fmt::format("{} pixels are not {} x {}", pixels, size.height, size.width));
}

/// Calls `visit(pixel)` for each neighbour of `pixel` within the picture.
template <class Visit>
void visit_neighbours(std::size_t pixel, Size size, Neighbours neighbours, const Visit& visit) {
  const auto y = static_cast<std::int64_t>(pixel) / size.width;
  const auto x = static_cast<std::int64_t>(pixel) % size.width;
  const std::size_t count = neighbours == Neighbours::Four ? 4 : 8;
  for (const auto& step : std::span(kSteps).first(count)) {
    const auto to_y = y + step.y, to_x = x + step.x;
    if (to_y < 0 || to_x < 0 || to_y >= size.height || to_x >= size.width) continue;
    visit(static_cast<std::size_t>(to_y * size.width + to_x));
  }
}

/// Gives `label` to all that is connected with `first` in `set`.
void fill(std::span<const std::uint8_t> set, Size size, Neighbours neighbours, std::size_t first,
          std::int32_t label, std::vector<std::int32_t>& labels) {
  std::vector<std::size_t> open = {first};
  labels[first] = label;
  while (!open.empty()) {
    const auto pixel = open.back();
    open.pop_back();
    visit_neighbours(pixel, size, neighbours, [&](std::size_t other) {
      if (set[other] == 0 || labels[other] != 0) return;
      labels[other] = label;
      open.push_back(other);
    });
  }
}

/// Numbers the pixels of `set` that have no label yet.
void label_rest(std::span<const std::uint8_t> set, Size size, Neighbours neighbours,
                Components& found) {
  for (std::size_t pixel = 0; pixel < set.size(); ++pixel) {
    if (set[pixel] != 0 && found.labels[pixel] == 0)
      fill(set, size, neighbours, pixel, ++found.count, found.labels);
  }
}

/// A pixel that an object could take next.
struct Candidate {
  float probability;
  std::int64_t order;
  std::size_t pixel;
  std::int32_t label;

  bool operator<(const Candidate& other) const {
    return probability != other.probability ? probability < other.probability : order > other.order;
  }
};

void flood(std::span<const float> probability, std::span<const std::uint8_t> set, Size size,
           Components& found) {
  std::priority_queue<Candidate> open;
  std::int64_t order = 0;
  const auto reach = [&](std::size_t from) {
    visit_neighbours(from, size, Neighbours::Four, [&](std::size_t pixel) {
      if (set[pixel] != 0 && found.labels[pixel] == 0)
        open.push({probability[pixel], order++, pixel, found.labels[from]});
    });
  };
  for (std::size_t pixel = 0; pixel < set.size(); ++pixel)
    if (found.labels[pixel] != 0) reach(pixel);
  while (!open.empty()) {
    const auto next = open.top();
    open.pop();
    if (found.labels[next.pixel] != 0) continue;
    found.labels[next.pixel] = next.label;
    reach(next.pixel);
  }
}

/// Renumbers objects in the order of their first pixels.
void renumber(Components& found) {
  std::vector<std::int32_t> names(static_cast<std::size_t>(found.count) + 1);
  std::int32_t next = 0;
  for (auto& label : found.labels) {
    if (label == 0) continue;
    auto& name = names[static_cast<std::size_t>(label)];
    if (name == 0) name = ++next;
    label = name;
  }
}

}  // namespace

Components connected_components(std::span<const std::uint8_t> set, Size size,
                                Neighbours neighbours) {
  require_size(set.size(), size);
  Components found = {std::vector<std::int32_t>(set.size()), 0};
  label_rest(set, size, neighbours, found);
  return found;
}

Components watershed(std::span<const float> probability, std::span<const std::uint8_t> set,
                     Size size, float seed) {
  require_size(set.size(), size);
  require_size(probability.size(), size);
  std::vector<std::uint8_t> seeds(set.size());
  for (std::size_t i = 0; i < set.size(); ++i) seeds[i] = set[i] != 0 && probability[i] >= seed;
  auto found = connected_components(seeds, size);
  flood(probability, set, size, found);
  label_rest(set, size, Neighbours::Four, found);
  renumber(found);
  return found;
}

namespace {

/// Clockwise from the pixel above.
constexpr std::array<Step, 8> kAround = {
    {{-1, 0}, {-1, 1}, {0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}}};

/// Can the pixel in the middle of `around` go in this half of an iteration? Guo and Hall's
/// conditions on their P2 .. P9, which are `around`.
bool removable(const std::array<bool, 8>& around, bool first_half) {
  const auto lit = [&](std::size_t i) { return around[i % 8]; };
  int parts = 0, pairs = 0, other_pairs = 0;
  for (std::size_t i = 0; i < 8; i += 2) {
    parts += !lit(i) && (lit(i + 1) || lit(i + 2));
    pairs += lit(i + 7) || lit(i);
    other_pairs += lit(i) || lit(i + 1);
  }
  const int neighbours = std::min(pairs, other_pairs);
  if (parts != 1 || neighbours < 2 || neighbours > 3) return false;
  return first_half ? !((lit(0) || lit(1) || !lit(3)) && lit(2))
                    : !((lit(4) || lit(5) || !lit(7)) && lit(6));
}

/// A pixel is examined again only when one of its neighbours has gone.
class Thinner {
 public:
  Thinner(std::span<const std::uint8_t> set, Size size)
      : lit_(set.begin(), set.end()), queued_(set.size()), size_(size) {
    for (std::size_t i = 0; i < lit_.size(); ++i)
      if (lit_[i] != 0) queue(i);
  }

  std::vector<std::uint8_t> run() && {
    while (!candidates_.empty()) {
      const auto gone = remove(true);
      queue_neighbours(gone);
      const auto gone_later = remove(false);
      for (const auto pixel : candidates_) queued_[pixel] = 0;
      candidates_.clear();
      queue_neighbours(gone);
      queue_neighbours(gone_later);
    }
    return std::move(lit_);
  }

 private:
  void queue(std::size_t pixel) {
    if (queued_[pixel] != 0) return;
    queued_[pixel] = 1;
    candidates_.push_back(pixel);
  }

  void queue_neighbours(const std::vector<std::size_t>& pixels) {
    for (const auto pixel : pixels) {
      visit_neighbours(pixel, size_, Neighbours::Eight, [&](std::size_t other) {
        if (lit_[other] != 0) queue(other);
      });
    }
  }

  std::array<bool, 8> around(std::size_t pixel) const {
    const auto y = static_cast<std::int64_t>(pixel) / size_.width;
    const auto x = static_cast<std::int64_t>(pixel) % size_.width;
    std::array<bool, 8> result{};
    for (std::size_t i = 0; i < 8; ++i) {
      const auto at_y = y + kAround[i].y, at_x = x + kAround[i].x;
      result[i] = at_y < 0 || at_x < 0 || at_y >= size_.height || at_x >= size_.width ||
                  lit_[static_cast<std::size_t>(at_y * size_.width + at_x)] != 0;
    }
    return result;
  }

  /// All candidates that can go in this half go at once.
  std::vector<std::size_t> remove(bool first_half) {
    std::vector<std::size_t> gone;
    for (const auto pixel : candidates_)
      if (lit_[pixel] != 0 && removable(around(pixel), first_half)) gone.push_back(pixel);
    for (const auto pixel : gone) lit_[pixel] = 0;
    return gone;
  }

  std::vector<std::uint8_t> lit_, queued_;
  std::vector<std::size_t> candidates_;
  Size size_;
};

}  // namespace

std::vector<std::uint8_t> thinned(std::span<const std::uint8_t> set, Size size) {
  require_size(set.size(), size);
  return Thinner(set, size).run();
}

}  // namespace triptych::segmentation
