// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/augment.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/base/wide_math.h"

namespace triptych::segmentation {
namespace {

struct Point {
  double y = 0;
  double x = 0;
};

/// The four grid nodes around a position and their Catmull-Rom weights.
struct CubicTaps {
  std::array<std::size_t, 4> node;
  std::array<double, 4> weight;
};

std::vector<CubicTaps> cubic_taps(std::int64_t size, std::int64_t nodes) {
  std::vector<CubicTaps> taps;
  for (std::int64_t i = 0; i < size; ++i) {
    const double position = static_cast<double>(i * (nodes - 1)) /
                            static_cast<double>(std::max<std::int64_t>(size - 1, 1));
    const auto base = static_cast<std::int64_t>(position);
    const double t = position - static_cast<double>(base);
    CubicTaps tap;
    for (std::int64_t k = 0; k < 4; ++k) {
      tap.node[static_cast<std::size_t>(k)] =
          static_cast<std::size_t>(std::clamp<std::int64_t>(base + k - 1, 0, nodes - 1));
    }
    tap.weight = {((2 - t) * t - 1) * t / 2, ((3 * t - 5) * t * t + 2) / 2,
                  ((4 - 3 * t) * t + 1) * t / 2, (t - 1) * t * t / 2};
    taps.push_back(tap);
  }
  return taps;
}

/// Smooth random displacements over a frame.
class ElasticField {
 public:
  ElasticField(const AugmentOptions& options, std::int64_t height, std::int64_t width,
               RandomStream& random)
      : nodes_(static_cast<std::size_t>(options.elastic_grid)),
        rows_(cubic_taps(height, options.elastic_grid)),
        columns_(cubic_taps(width, options.elastic_grid)) {
    for (std::size_t i = 0; i < nodes_ * nodes_; ++i) {
      const double y = random.normal() * options.elastic_sigma;
      const double x = random.normal() * options.elastic_sigma;
      grid_.push_back({y, x});
    }
  }

  Point at(std::int64_t row, std::int64_t column) const {
    const auto& r = rows_[static_cast<std::size_t>(row)];
    const auto& c = columns_[static_cast<std::size_t>(column)];
    Point sum;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        const auto& node = grid_[r.node[i] * nodes_ + c.node[j]];
        sum.y += r.weight[i] * c.weight[j] * node.y;
        sum.x += r.weight[i] * c.weight[j] * node.x;
      }
    }
    return sum;
  }

 private:
  std::size_t nodes_;
  std::vector<CubicTaps> rows_, columns_;
  std::vector<Point> grid_;
};

bool coin(RandomStream& random, bool enabled) { return random.uniform() < 0.5F && enabled; }

std::int64_t corner(RandomStream& random, std::int64_t size, std::int64_t frame, bool drawn) {
  const auto room = size - frame;
  const auto offset = random.below(std::max<std::int64_t>(room, 0) + 1);
  return room >= 0 && drawn ? offset : room / 2;
}

/// Pixels of the sample per pixel of the patch: 1, or for one patch in five below 1 or above it
/// with equal chances (after nnU-Net's chance and range).
double drawn_zoom(RandomStream& random, bool enabled) {
  const bool zooms = random.uniform() < 0.2F && enabled;
  const bool enlarges = random.uniform() < 0.5F;
  const float factor = enlarges ? random.uniform(0.7F, 1) : random.uniform(1, 1.4F);
  return zooms ? double{factor} : 1;
}

/// Where each pixel of the patch comes from: patch -> (transposed, mirrored) frame -> (turned,
/// zoomed, deformed) sample.
class Placement {
 public:
  Placement(const Sample& sample, const AugmentOptions& options, RandomStream& random)
      : flip_x_(coin(random, options.flip_x)),
        flip_y_(coin(random, options.flip_y)),
        transpose_(coin(random, options.transpose)),
        height_(transpose_ ? options.width : options.height),
        width_(transpose_ ? options.height : options.width),
        top_(corner(random, sample.height, height_, options.random_crop)),
        left_(corner(random, sample.width, width_, options.random_crop)),
        angle_(random.uniform(-1, 1) * options.max_rotation_degrees * std::numbers::pi / 180),
        sin_(wide::sin(angle_)),
        cos_(wide::cos(angle_)),
        deformed_(options.elastic_sigma > 0),
        field_(options, height_, width_, random),
        zoom_(drawn_zoom(random, options.zoom)) {}

  Point source(std::int64_t row, std::int64_t column) const {
    if (transpose_) std::swap(row, column);
    if (flip_y_) row = height_ - 1 - row;
    if (flip_x_) column = width_ - 1 - column;
    auto point = turned(row, column);
    if (deformed_) {
      const auto moved = field_.at(row, column);
      point = {point.y + moved.y, point.x + moved.x};
    }
    return {point.y + static_cast<double>(top_), point.x + static_cast<double>(left_)};
  }

 private:
  Point turned(std::int64_t row, std::int64_t column) const {
    const Point point{static_cast<double>(row), static_cast<double>(column)};
    if (angle_ == 0 && zoom_ == 1) return point;
    const Point centre{static_cast<double>(height_ - 1) / 2, static_cast<double>(width_ - 1) / 2};
    const double y = zoom_ * (point.y - centre.y), x = zoom_ * (point.x - centre.x);
    return {centre.y + cos_ * y - sin_ * x, centre.x + sin_ * y + cos_ * x};
  }

  bool flip_x_, flip_y_, transpose_;
  std::int64_t height_, width_, top_, left_;
  double angle_, sin_, cos_;
  bool deformed_;
  ElasticField field_;
  double zoom_;
};

/// Pixel (y, x) of a plane continued by reflection.
template <class T>
T pixel(const T* plane, const Sample& sample, std::int64_t y, std::int64_t x) {
  return plane[reflect_index(y, sample.height) * sample.width + reflect_index(x, sample.width)];
}

float interpolated(const float* plane, const Sample& sample, const Point& point) {
  const auto y = static_cast<std::int64_t>(std::floor(point.y));
  const auto x = static_cast<std::int64_t>(std::floor(point.x));
  const auto fy = static_cast<float>(point.y - static_cast<double>(y));
  const auto fx = static_cast<float>(point.x - static_cast<double>(x));
  if (fy == 0 && fx == 0) return pixel(plane, sample, y, x);
  const auto row = [&](std::int64_t at) {
    return pixel(plane, sample, at, x) * (1 - fx) + pixel(plane, sample, at, x + 1) * fx;
  };
  return row(y) * (1 - fy) + row(y + 1) * fy;
}

}  // namespace

void validate(const AugmentOptions& options) {
  const auto require = [](bool holds, const char* problem) {
    if (!holds) throw_invalid("augment", problem);
  };
  require(options.height > 0 && options.width > 0, "the patch must have at least one pixel");
  require(options.elastic_grid >= 2 && options.elastic_grid <= 64, "elastic_grid is from 2 to 64");
  require(options.elastic_sigma >= 0 && options.elastic_sigma <= 1000,
          "elastic_sigma is from 0 to 1000 pixels");
  require(options.max_rotation_degrees >= 0 && options.max_rotation_degrees <= 180,
          "max_rotation_degrees is from 0 to 180");
  require(!options.intensity.deviation.empty() && options.intensity.deviation[0] > 0 &&
              std::ranges::min(options.intensity.deviation) >= 0,
          "intensity.deviation is not negative");
}

Sample augment(const Sample& sample, const AugmentOptions& options, RandomStream& random) {
  const Placement placement(sample, options, random);
  Sample patch{sample.name, sample.split, sample.channels, options.height, options.width, {}, {}};
  if (!sample.labels.empty()) patch.labels.resize(static_cast<std::size_t>(patch.pixels()));
  patch.image.resize(static_cast<std::size_t>(patch.channels * patch.pixels()));
  for (std::int64_t y = 0; y < patch.height; ++y) {
    for (std::int64_t x = 0; x < patch.width; ++x) {
      const auto source = placement.source(y, x);
      const auto i = y * patch.width + x;
      const auto nearest_y = std::llround(source.y), nearest_x = std::llround(source.x);
      if (!patch.labels.empty()) {
        patch.labels[static_cast<std::size_t>(i)] =
            pixel(sample.labels.data(), sample, nearest_y, nearest_x);
      }
      if (!sample.weights.empty())
        patch.weights.push_back(pixel(sample.weights.data(), sample, nearest_y, nearest_x));
      for (std::int64_t c = 0; c < sample.channels; ++c) {
        patch.image[static_cast<std::size_t>(c * patch.pixels() + i)] =
            interpolated(sample.image.data() + c * sample.pixels(), sample, source);
      }
    }
  }
  change_intensity(patch, options.intensity, random);
  return patch;
}

}  // namespace triptych::segmentation
