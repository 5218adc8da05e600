// SPDX-License-Identifier: Apache-2.0
#include "core/nn/initializers.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"

namespace triptych {

Tensor uniform_fan_in(const Shape& shape, std::int64_t fan_in, std::uint64_t seed,
                      std::string_view name) {
  Tensor tensor(TensorSpec{DType::F32, shape});
  const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in)));
  // The numbers of a RandomStream, four at a time.
  const auto values = tensor.as<float>();
  const auto stream = stream_of(name);
  for (std::size_t first = 0; first < values.size(); first += 4) {
    const auto quad = random_quad(seed, stream, first / 4);
    for (std::size_t i = 0; i < std::min(values.size() - first, std::size_t{4}); ++i)
      values[first + i] = 2 * bound * uniform_from_bits(quad[i]) - bound;
  }
  return tensor;
}

Tensor stratified_fan_in(const Shape& shape, std::int64_t fan_in, std::uint64_t seed,
                         std::string_view name) {
  Tensor tensor(TensorSpec{DType::F32, shape});
  const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in)));
  RandomStream random(seed, stream_of(name));
  const auto weights = tensor.as<float>();
  const auto count = weights.size() / static_cast<std::size_t>(shape[0]);
  for (std::size_t first = 0; first < weights.size(); first += count) {
    for (std::size_t i = 0; i < count; ++i) {
      const float position = (static_cast<float>(i) + random.uniform()) / static_cast<float>(count);
      const auto swapped =
          first + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i + 1)));
      weights[first + i] = weights[swapped];
      weights[swapped] = bound * (2 * position - 1);
    }
  }
  return tensor;
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor(TensorSpec{DType::F32, shape});
  std::ranges::fill(tensor.as<float>(), value);
  return tensor;
}

}  // namespace triptych
