// Counter-based random numbers: the same (seed, stream, index) gives the same number on every
// backend, at any thread count and in any order. Philox4x32-10 of Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/base/host_device.h"
#include "core/base/wide_math.h"

namespace triptych {

/// Four numbers, and the counter that they come from.
struct RandomQuad {
  std::uint32_t words[4];
  TRIPTYCH_HOST_DEVICE constexpr std::uint32_t operator[](std::size_t i) const { return words[i]; }
};

struct RandomKey {
  std::uint32_t words[2];
};

/// Ten Philox rounds over a 128-bit counter with a 64-bit key.
TRIPTYCH_HOST_DEVICE constexpr RandomQuad philox4x32(RandomQuad counter, RandomKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    const auto& [key0, key1] = key.words;
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key = {key0 + 0x9E3779B9u, key1 + 0xBB67AE85u};
  }
  return counter;
}

/// The numbers of four elements, 4 quad to 4 quad + 3.
TRIPTYCH_HOST_DEVICE constexpr RandomQuad random_quad(std::uint64_t seed, std::uint64_t stream,
                                                      std::uint64_t quad) {
  return philox4x32({static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(quad >> 32),
                     static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// One 32-bit number: `stream` names the use (a node, a sample), `index` the element.
TRIPTYCH_HOST_DEVICE constexpr std::uint32_t random_bits(std::uint64_t seed, std::uint64_t stream,
                                                         std::uint64_t index) {
  return random_quad(seed, stream, index >> 2)[index & 3];
}

/// 32 random bits as a number in [0, 1), a multiple of 2^-24.
TRIPTYCH_HOST_DEVICE constexpr float uniform_from_bits(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24F;
}

/// Uniform in [0, 1), a multiple of 2^-24.
TRIPTYCH_HOST_DEVICE constexpr float random_uniform(std::uint64_t seed, std::uint64_t stream,
                                                    std::uint64_t index) {
  return uniform_from_bits(random_bits(seed, stream, index));
}

/// A sequence over one stream, for host code that draws numbers one after another.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  std::uint32_t bits() { return random_bits(seed_, stream_, index_++); }
  float uniform() { return uniform_from_bits(bits()); }
  /// Uniform in [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  /// Uniform integer in [0, bound), bound >= 1. The bias is below bound / 2^32.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>((std::uint64_t{bits()} * static_cast<std::uint64_t>(bound)) >>
                                     32);
  }
  /// Standard normal by Box and Muller.
  float normal() {
    const double radius = std::sqrt(-2.0 * wide::log(1.0 - double{uniform()}));
    return static_cast<float>(radius * wide::cos(6.283185307179586 * double{uniform()}));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t index_ = 0;
};

}  // namespace triptych
