// From where to where the numbers of a run go, on the command line and in a checkpoint alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string_view>

#include "core/base/error.h"

namespace triptych::training {

struct WholeLimits {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

struct NumberLimits {
  double low = 0;
  double high = 0;
  bool above_low = false;  ///< `low` itself is not allowed
};

/// "from 1 to 8", "above 0, up to 1".
inline std::string to_string(const WholeLimits& limits) {
  return fmt::format("from {} to {}", limits.low, limits.high);
}
inline std::string to_string(const NumberLimits& limits) {
  return fmt::format(fmt::runtime(limits.above_low ? "above {}, up to {}" : "from {} to {}"),
                     limits.low, limits.high);
}

/// False for NaN, too.
inline bool within(const WholeLimits& limits, std::int64_t value) {
  return value >= limits.low && value <= limits.high;
}
inline bool within(const NumberLimits& limits, double value) {
  return (limits.above_low ? value > limits.low : value >= limits.low) && value <= limits.high;
}

/// Throws InvalidArgument, naming it, unless `value` is within `limits`.
template <class Limits, class Number>
void require_within(std::string_view name, const Limits& limits, Number value) {
  if (within(limits, value)) return;
  throw InvalidArgument(fmt::format("\"{}\" must be {}, got {}", name, to_string(limits), value));
}

namespace limits {

inline constexpr WholeLimits kThreads = {0, 1024};
inline constexpr WholeLimits kBatch = {1, 65536};
inline constexpr WholeLimits kAccumulate = {1, 4096};
inline constexpr WholeLimits kSeed = {0, std::numeric_limits<std::int64_t>::max()};
inline constexpr WholeLimits kSteps = {0, 1000000000};
inline constexpr WholeLimits kEpochs = {0, 1000000};
inline constexpr WholeLimits kMemoryMib = {0, std::int64_t{1} << 24};
inline constexpr WholeLimits kStatisticsBatches = {0, 10000};
inline constexpr WholeLimits kTile = {0, 16384};
inline constexpr WholeLimits kMargin = {-1, 8191};  // -1: a fourth of the tile
inline constexpr WholeLimits kSyntheticImages = {2, 100000};
inline constexpr WholeLimits kMaskValue = {-1, 65535};  // -1: none
inline constexpr WholeLimits kFolds = {0, 1000};        // 0: no cross-validation
inline constexpr WholeLimits kRanks = {1, 1024};
inline constexpr WholeLimits kShards = {0, 4096};

inline constexpr NumberLimits kLearningRate = {1e-12, 1000};
inline constexpr NumberLimits kBorderWeight = {0, 1000};
inline constexpr NumberLimits kBorderSigma = {0.1, 100};
inline constexpr NumberLimits kMomentum = {0, 1};
inline constexpr NumberLimits kWeightDecay = {0, 1};
inline constexpr NumberLimits kEpsilon = {0, 1, true};
inline constexpr NumberLimits kValidationFraction = {0, 0.95};
inline constexpr NumberLimits kLinkLatency = {0, 3600};
inline constexpr NumberLimits kLinkBandwidth = {1, 1e15};
inline constexpr NumberLimits kTimeout = {0.001, 1e6};
// Images go from 0 to 1, those of floating values further.
inline constexpr NumberLimits kMean = {-1e6, 1e6};
inline constexpr NumberLimits kDeviation = {0, 1e6, true};

}  // namespace limits
}  // namespace triptych::training
