// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/synthetic.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/wide_math.h"
#include "core/io/input_file.h"
#include "core/io/output_ledger.h"
#include "experiments/training/data/synthetic_noise.h"

namespace triptych::segmentation {
namespace {

/// Made of IEEE operations alone, unlike the C library's hypot.
double length(double y, double x) { return std::sqrt(y * y + x * x); }

struct Cell {
  double y = 0;
  double x = 0;
  double reach = 0;  ///< how much larger than others it grows, in pixels
  float brightness = 0;
};

/// View of the partition from a pixel: its cell and the distance to the nearest border.
struct Place {
  float border_distance = 0;
  float brightness = 0;
};

/// One random cell centre per square of a grid that reaches two squares beyond the picture. Some
/// squares stay empty, so that sizes differ.
class Partition {
 public:
  Partition(Size size, double cell_size, RandomStream random)
      : cell_size_(cell_size),
        columns_(static_cast<std::int64_t>(static_cast<double>(size.width) / cell_size) + 1 +
                 2 * kMargin),
        rows_(static_cast<std::int64_t>(static_cast<double>(size.height) / cell_size) + 1 +
              2 * kMargin),
        present_(static_cast<std::size_t>(rows_ * columns_)) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t column = 0; column < columns_; ++column) {
        const auto offset = [&](std::int64_t square) {
          return (static_cast<double>(square - kMargin) + random.uniform(0.02F, 0.98F)) * cell_size;
        };
        const double y = offset(row), x = offset(column);
        const double reach = 0.6 * random.uniform() * random.uniform() * cell_size;
        cells_.push_back({y, x, reach, kBrightness + 0.03F * random.normal()});
        present_[cells_.size() - 1] = random.uniform() > 0.12F;
      }
    }
  }

  Place at(double y, double x) const {
    Neighbour nearest, second;
    for_neighbours(y, x, [&](const Cell& cell) {
      const double distance = length(cell.y - y, cell.x - x);
      const Neighbour candidate{&cell, distance, distance - cell.reach};
      if (candidate.cost < nearest.cost) {
        second = std::exchange(nearest, candidate);
      } else if (candidate.cost < second.cost) {
        second = candidate;
      }
    });
    if (second.cell == nullptr) return {static_cast<float>(cell_size_), kBrightness};
    // The border is where both costs are equal. Their difference over the length of its gradient is
    // the distance from there, to first order.
    const auto towards = [&](const Neighbour& neighbour, double Cell::*axis, double from) {
      return (neighbour.cell->*axis - from) / std::max(neighbour.distance, 1.0);
    };
    const double slope = length(towards(second, &Cell::y, y) - towards(nearest, &Cell::y, y),
                                towards(second, &Cell::x, x) - towards(nearest, &Cell::x, x));
    const double border = (second.cost - nearest.cost) / std::max(slope, 0.3);
    return {static_cast<float>(border), nearest.cell->brightness};
  }

 private:
  static constexpr std::int64_t kMargin = 2;
  static constexpr float kBrightness = 0.6F;

  struct Neighbour {
    const Cell* cell = nullptr;
    double distance = 0;
    double cost = std::numeric_limits<double>::infinity();
  };

  template <class Visit>
  void for_neighbours(double y, double x, const Visit& visit) const {
    const auto square = [this](double position, std::int64_t squares) {
      const auto index = static_cast<std::int64_t>(std::floor(position / cell_size_)) + kMargin;
      return std::clamp(index, kMargin, squares - 1 - kMargin);
    };
    const auto row = square(y, rows_), column = square(x, columns_);
    for (auto r = row - kMargin; r <= row + kMargin; ++r) {
      for (auto c = column - kMargin; c <= column + kMargin; ++c) {
        const auto i = static_cast<std::size_t>(r * columns_ + c);
        if (present_[i]) visit(cells_[i]);
      }
    }
  }

  double cell_size_;
  std::int64_t columns_, rows_;
  std::vector<bool> present_;
  std::vector<Cell> cells_;
};

/// The random numbers of one picture: a stream of its own for every use.
class Streams {
 public:
  Streams(std::uint64_t seed, std::int64_t index)
      : seed_(seed), next_(static_cast<std::uint64_t>(index) << 16) {}
  RandomStream next() { return {seed_, next_++}; }

 private:
  std::uint64_t seed_;
  std::uint64_t next_;
};

struct Tissue {
  Field value;     ///< brightness, 0 to 1
  Field distance;  ///< to the nearest membrane's middle
  std::vector<std::uint16_t> mask;
};

Tissue grow_tissue(const SyntheticOptions& options, Streams& streams) {
  const auto size = options.size;
  const Partition partition(size, options.cell_size, streams.next());
  const auto bend_y = smooth_noise(size, options.cell_size * 0.55, streams.next());
  const auto bend_x = smooth_noise(size, options.cell_size * 0.55, streams.next());
  const auto ripple_y = smooth_noise(size, 11, streams.next());
  const auto ripple_x = smooth_noise(size, 11, streams.next());
  const auto thickness = smooth_noise(size, 35, streams.next());
  const auto slant = smooth_noise(size, 45, streams.next());
  Tissue tissue;
  for (std::int64_t y = 0, i = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x, ++i) {
      const auto p = static_cast<std::size_t>(i);
      const auto place = partition.at(
          static_cast<double>(y) + 0.22 * options.cell_size * bend_y[p] + 1.6 * ripple_y[p],
          static_cast<double>(x) + 0.22 * options.cell_size * bend_x[p] + 1.6 * ripple_x[p]);
      const float half = 2.6F + 0.9F * thickness[p];
      // A membrane cut at a slant looks wide and pale.
      const float pale = std::clamp(slant[p], 0.0F, 1.0F);
      const float reach = place.border_distance / (half * (0.75F + 0.6F * pale));
      const float darkness =
          (0.46F - 0.16F * pale) * static_cast<float>(wide::exp(double{-reach * reach * reach}));
      tissue.value.push_back(place.brightness - darkness);
      tissue.distance.push_back(place.border_distance);
      tissue.mask.push_back(place.border_distance < half ? 0 : 255);
    }
  }
  return tissue;
}

/// A mitochondrion or a vesicle: an ellipse with a dark rim.
struct Organelle {
  double y, x, long_radius, short_radius, angle;
  float inside, rim, stripes;
};

void stamp(const Organelle& organelle, Size size, Field& value) {
  const double sin = wide::sin(organelle.angle), cos = wide::cos(organelle.angle);
  const auto reach = static_cast<std::int64_t>(organelle.long_radius) + 3;
  const auto row = static_cast<std::int64_t>(organelle.y),
             column = static_cast<std::int64_t>(organelle.x);
  for (auto y = std::max<std::int64_t>(row - reach, 0); y < std::min(row + reach, size.height);
       ++y) {
    for (auto x = std::max<std::int64_t>(column - reach, 0);
         x < std::min(column + reach, size.width); ++x) {
      const double dy = static_cast<double>(y) - organelle.y,
                   dx = static_cast<double>(x) - organelle.x;
      const double along = cos * dx + sin * dy;
      const double across = cos * dy - sin * dx;
      const double radius = length(along / organelle.long_radius, across / organelle.short_radius);
      if (radius > 1) continue;
      const double edge = (1 - radius) * organelle.short_radius;
      const double wave = wide::sin(along * 1.5 + 0.4 * across) * std::min(edge / 2, 1.0);
      auto& pixel = value[static_cast<std::size_t>(y * size.width + x)];
      pixel += static_cast<float>(wave) * organelle.stripes -
               (edge < 1.6 ? organelle.rim : organelle.inside);
    }
  }
}

void add_organelles(Size size, RandomStream random, Tissue& tissue) {
  const auto tries = size.pixels() / 500;
  for (std::int64_t n = 0; n < tries; ++n) {
    const auto y = random.below(size.height), x = random.below(size.width);
    const bool mitochondrion = random.uniform() < 0.35F;
    const double long_radius = mitochondrion ? random.uniform(7, 13) : random.uniform(1.6F, 3.2F);
    const double short_radius = long_radius * random.uniform(0.55F, 0.95F);
    const double angle = random.uniform(0, std::numbers::pi_v<float>);
    // Organelles lie inside their cell, clear of its membrane.
    if (tissue.distance[static_cast<std::size_t>(y * size.width + x)] < long_radius + 3) continue;
    stamp(
        {static_cast<double>(y), static_cast<double>(x), long_radius, short_radius, angle,
         mitochondrion ? 0.12F : 0.06F, mitochondrion ? 0.28F : 0.22F, mitochondrion ? 0.1F : 0.0F},
        size, tissue.value);
  }
}

/// Texture and uneven staining of the tissue, then blur and noise of the microscope.
Field photograph(Field value, Size size, Streams& streams) {
  const auto fine = smooth_noise(size, 2.5, streams.next());
  const auto coarse = smooth_noise(size, 6, streams.next());
  const auto patches = smooth_noise(size, 18, streams.next());
  for (std::size_t i = 0; i < value.size(); ++i) {
    value[i] += 0.11F * fine[i] + 0.1F * coarse[i] + 0.05F * patches[i];
  }
  value = blurred(value, size, 0.8);
  const auto contrast = smooth_noise(size, 150, streams.next());
  const auto light = smooth_noise(size, 190, streams.next());
  auto grain = streams.next();
  for (std::size_t i = 0; i < value.size(); ++i) {
    value[i] = 0.5F + (value[i] - 0.5F) * (1.1F + 0.15F * contrast[i]) + 0.05F * light[i] +
               0.05F * grain.normal();
  }
  return value;
}

}  // namespace

MembranePicture make_membranes(const SyntheticOptions& options, std::int64_t index) {
  const auto size = options.size;
  if (size.height < 1 || size.width < 1 || size.height > 16384 || size.width > 16384 ||
      !(options.cell_size >= 8 && options.cell_size <= 4096) || index < 0) {
    throw_invalid("synthetic", "needs 1 to 16384 pixels a side, cells of 8 to 4096, index >= 0");
  }
  Streams streams(options.seed, index);
  auto tissue = grow_tissue(options, streams);
  add_organelles(size, streams.next(), tissue);
  const auto value = photograph(std::move(tissue.value), size, streams);
  MembranePicture picture;
  picture.image = {size.width, size.height, 1, 8, {}};
  picture.mask = {size.width, size.height, 1, 8, std::move(tissue.mask)};
  for (const auto v : value) {
    picture.image.samples.push_back(
        static_cast<std::uint16_t>(std::lround(std::clamp(v, 0.0F, 1.0F) * 255)));
  }
  return picture;
}

Dataset synthetic_dataset(const SyntheticOptions& options, std::int64_t count) {
  if (options.classes < 1 || options.classes > 2)
    throw_invalid("synthetic", "a membrane is there or not: 1 or 2 classes");
  Dataset dataset;
  dataset.classes = options.classes;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto picture = make_membranes(options, i);
    Sample sample{fmt::format("{:05}", i), "", 1, options.size.height, options.size.width,
                  to_gray(picture.image),  {}};
    for (const auto value : picture.mask.samples) sample.labels.push_back(value == 0 ? 1 : 0);
    dataset.samples.push_back(std::move(sample));
  }
  return dataset;
}

namespace {

/// Calls use(name, content) for each file of the data set, in order, until it returns false.
template <class Use>
bool for_each_file(const SyntheticOptions& options, std::int64_t count, const Use& use) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto picture = make_membranes(options, i);
    const auto name = fmt::format("{:05}.png", i);
    if (!use("images/" + name, encode_png(picture.image))) return false;
    if (!use("masks/" + name, encode_png(picture.mask))) return false;
  }
  return true;
}

}  // namespace

bool replaces_dataset(const std::filesystem::path& folder, const SyntheticOptions& options,
                      std::int64_t count) {
  return !for_each_file(options, count, [&](const std::string& name, const std::string& content) {
    std::error_code ignored;
    const auto path = folder / name;
    return !std::filesystem::is_regular_file(path, ignored) || read_file(path) == content;
  });
}

void save_synthetic_dataset(const std::filesystem::path& folder, const SyntheticOptions& options,
                            std::int64_t count) {
  OutputLedger own(folder);
  for (std::int64_t i = 0; i < count; ++i) {
    for (const auto* kind : {"images", "masks"}) own.require(fmt::format("{}/{:05}.png", kind, i));
  }
  for_each_file(options, count, [&](const std::string& name, const std::string& content) {
    own.write(name, content);
    return true;
  });
}

}  // namespace triptych::segmentation
