// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/synthetic_noise.h"

#include <cmath>

#include "core/base/wide_math.h"
#include "experiments/training/data/augment.h"

namespace triptych::segmentation {
namespace {

struct LatticeTap {
  std::size_t node = 0;
  float weight = 0;  ///< of the next node
};

std::vector<LatticeTap> lattice_taps(std::int64_t size, double period) {
  std::vector<LatticeTap> taps;
  for (std::int64_t i = 0; i < size; ++i) {
    const double position = static_cast<double>(i) / period;
    const double t = position - std::floor(position);
    taps.push_back({static_cast<std::size_t>(position), static_cast<float>(t * t * (3 - 2 * t))});
  }
  return taps;
}

/// Blurs each row and transposes, so that two calls blur along both axes.
Field blurred_rows_transposed(const Field& field, Size size, const std::vector<float>& kernel) {
  const auto radius = std::ssize(kernel) / 2;
  Field result(field.size());
  for (std::int64_t y = 0; y < size.height; ++y) {
    const float* row = field.data() + y * size.width;
    for (std::int64_t x = 0; x < size.width; ++x) {
      float sum = 0;
      for (std::int64_t k = -radius; k <= radius; ++k) {
        sum += kernel[static_cast<std::size_t>(k + radius)] * row[reflect_index(x + k, size.width)];
      }
      result[static_cast<std::size_t>(x * size.height + y)] = sum;
    }
  }
  return result;
}

}  // namespace

Field smooth_noise(Size size, double period, RandomStream random) {
  const auto rows = lattice_taps(size.height, period), columns = lattice_taps(size.width, period);
  const auto stride = columns.back().node + 2;
  Field lattice((rows.back().node + 2) * stride);
  for (auto& node : lattice) node = random.uniform(-1, 1);
  Field field;
  field.reserve(static_cast<std::size_t>(size.pixels()));
  for (const auto& row : rows) {
    for (const auto& column : columns) {
      const float* node = lattice.data() + row.node * stride + column.node;
      const float upper = std::lerp(node[0], node[1], column.weight);
      const float lower = std::lerp(node[stride], node[stride + 1], column.weight);
      field.push_back(std::lerp(upper, lower, row.weight));
    }
  }
  return field;
}

Field blurred(const Field& field, Size size, double sigma) {
  const auto radius = static_cast<std::int64_t>(std::ceil(3 * sigma));
  std::vector<float> kernel;
  float total = 0;
  for (std::int64_t k = -radius; k <= radius; ++k) {
    kernel.push_back(
        static_cast<float>(wide::exp(-static_cast<double>(k * k) / (2 * sigma * sigma))));
    total += kernel.back();
  }
  for (auto& weight : kernel) weight /= total;
  const auto columns = blurred_rows_transposed(field, size, kernel);
  return blurred_rows_transposed(columns, {size.width, size.height}, kernel);
}

}  // namespace triptych::segmentation
