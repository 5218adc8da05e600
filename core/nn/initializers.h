// Initial values of parameters, from counter-based random numbers: a parameter's values depend only
// on the seed and its name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/tensor.h"

namespace triptych {

/// A stream number for random numbers from a name (FNV-1a, 64 bits).
constexpr std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return hash;
}

/// Uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)): PyTorch's default for weights and biases of
/// linear and convolution layers (Kaiming uniform with a = sqrt(5)).
Tensor uniform_fan_in(const Shape& shape, std::int64_t fan_in, std::uint64_t seed,
                      std::string_view name);

/// The same distribution for each weight, but the weights of one output (`shape`'s first axis) are
/// stratified: each falls into a different one of equal intervals, in random order. So no output
/// starts with weights of one sign by chance (docs/decisions/0007-stratified-head.md).
Tensor stratified_fan_in(const Shape& shape, std::int64_t fan_in, std::uint64_t seed,
                         std::string_view name);

/// All elements equal to `value`.
Tensor filled(const Shape& shape, float value);

}  // namespace triptych
