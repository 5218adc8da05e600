// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lessons/access_patterns.h"

#include <array>
#include <memory>

#include "backends/cuda/kernels/platform.h"

namespace triptych::cuda::counted {
namespace {

inline constexpr int kLanes = 32;
inline constexpr int kElements = 16384;  ///< float32 in 64 KiB

/// As cudaMalloc gives it: from a multiple of 256 bytes on.
struct Memory {
  alignas(256) std::array<float, kElements> x{};
  alignas(256) std::array<float, kLanes> y{};
};

struct Tile {
  Shared<float, 1, kElements> elements;
};

/// y [lane] = the first number that the lane reads.
template <int kFloats>
__global__ void global_pattern_kernel(Global<const float> x, Global<float> y, AccessPattern p) {
  const std::int64_t lane = threadIdx.x;
  auto numbers = x.load<kFloats>(p.first + lane * p.stride);
  y[lane] = numbers[0];
}

template <int kFloats>
__global__ void shared_pattern_kernel(Global<float> y, AccessPattern p) {
  auto& tile = shared<Tile>();
  const std::int64_t lane = threadIdx.x;
  auto numbers = tile.elements.load<kFloats>(0, p.first + lane * p.stride);
  y[lane] = numbers[0];
}

template <int kFloats>
void run(emulation::EmulatedStream& stream, const AccessPattern& pattern) {
  const auto memory = std::make_unique<Memory>();
  const Global<const float> in(memory->x.data(), kElements);
  const Global<float> out(memory->y.data(), kLanes);
  if (pattern.space == emulation::Space::Global) {
    launch(&stream, "global-pattern", {{1}, {kLanes}}, global_pattern_kernel<kFloats>, in, out,
           pattern);
  } else {
    launch(&stream, "shared-pattern", {{1}, {kLanes}, sizeof(Tile)}, shared_pattern_kernel<kFloats>,
           out, pattern);
  }
}

}  // namespace

void run_access_pattern(emulation::EmulatedStream& stream, const AccessPattern& pattern) {
  const auto& [space, floats, stride, first] = pattern;
  const bool aligned = floats > 0 && stride % floats == 0 && first % floats == 0;
  const bool inside = stride >= 0 && first >= 0 && stride <= kElements && first <= kElements &&
                      first + (kLanes - 1) * stride + floats <= kElements;
  if (!aligned || !inside || (floats != 1 && floats != 2 && floats != 4)) {
    throw InvalidArgument("a lane reads 1, 2 or 4 numbers at a multiple of them, within 64 KiB");
  }
  if (floats == 1) return run<1>(stream, pattern);
  if (floats == 2) return run<2>(stream, pattern);
  run<4>(stream, pattern);
}

}  // namespace triptych::cuda::counted
