// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/distance_transform.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace triptych::segmentation {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Replaces f by the smallest f(q) + (p - q)^2 of each p, along one line after another.
class Line {
 public:
  explicit Line(std::int64_t length) : values_(static_cast<std::size_t>(length)) {
    lowest_.reserve(values_.size());
  }

  void transform(double* values, std::int64_t stride) {
    const auto length = std::ssize(values_);
    for (std::int64_t i = 0; i < length; ++i) value(i) = values[i * stride];
    find_envelope();
    if (lowest_.empty()) return;
    std::size_t piece = 0;
    for (std::int64_t p = 0; p < length; ++p) {
      while (piece + 1 < lowest_.size() && lowest_[piece + 1].from < static_cast<double>(p))
        ++piece;
      const auto q = lowest_[piece].vertex;
      values[p * stride] = value(q) + static_cast<double>((p - q) * (p - q));
    }
  }

 private:
  /// A parabola, and where it begins to be the lowest.
  struct Piece {
    std::int64_t vertex;
    double from;
  };

  double& value(std::int64_t i) { return values_[static_cast<std::size_t>(i)]; }

  /// Where the parabolas of a and b, which is to the right, meet.
  double meeting(std::int64_t a, std::int64_t b) {
    const auto height = [&](std::int64_t q) { return value(q) + static_cast<double>(q * q); };
    return (height(b) - height(a)) / static_cast<double>(2 * (b - a));
  }

  void find_envelope() {
    lowest_.clear();
    for (std::int64_t q = 0; q < std::ssize(values_); ++q) {
      if (value(q) == kInfinity) continue;
      double from = -kInfinity;
      while (!lowest_.empty()) {
        from = meeting(lowest_.back().vertex, q);
        if (from > lowest_.back().from) break;
        lowest_.pop_back();
        from = -kInfinity;
      }
      lowest_.push_back({q, from});
    }
  }

  std::vector<double> values_;
  std::vector<Piece> lowest_;
};

}  // namespace

std::vector<double> squared_distances(std::span<const std::uint8_t> set, Size size) {
  if (std::ssize(set) != size.pixels()) {
    throw_invalid("distance transform",
                  fmt::format("{} pixels are not {} x {}", set.size(), size.height, size.width));
  }
  std::vector<double> distances(set.size());
  std::ranges::transform(set, distances.begin(),
                         [](std::uint8_t in) { return in != 0 ? 0.0 : kInfinity; });
  Line column(size.height), row(size.width);
  for (std::int64_t x = 0; x < size.width; ++x) column.transform(distances.data() + x, size.width);
  for (std::int64_t y = 0; y < size.height; ++y)
    row.transform(distances.data() + y * size.width, 1);
  return distances;
}

}  // namespace triptych::segmentation
