// Common part of the elementwise kernels: one thread per element of the output, or per four where
// they lie side by side in every operand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>

#include "backends/cuda/kernels/platform.h"
#include "core/ops/scalar_math.h"
#include "core/runtime/broadcast_walk.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

inline constexpr unsigned kBlock = 256;

/// Blocks of `kBlock` threads for `threads` threads. Kernels loop when a grid is not enough.
inline LaunchShape one_dimension(std::int64_t threads) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
  const auto blocks = std::min((threads + kBlock - 1) / kBlock, kMostBlocks);
  return {{static_cast<unsigned>(std::max<std::int64_t>(blocks, 1))}, {kBlock}, 0};
}

/// True when all of them lie at multiples of kBytes, as vector accesses need. A value that was
/// written straight into a concat's output may not.
template <std::uintptr_t kBytes, class... Pointers>
TRIPTYCH_HOST_DEVICE bool is_aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % kBytes == 0) && ...);
}

/// True when accesses of four floats reach every element: all rows begin at a multiple of 16 bytes
/// and have whole vectors. `distances` are the lengths of rows and the elements between them.
template <class... Pointers>
bool moves_fours(std::initializer_list<std::int64_t> distances, const Pointers*... pointers) {
  return std::ranges::all_of(distances, [](std::int64_t d) { return d % 4 == 0; }) &&
         is_aligned<16>(pointers...);
}

/// Calls visit(i, width) for the elements i = first, first + step, ... below `end`, kEach
/// neighbours at once. Neighbours beyond the last whole group are visited one by one. `width` is a
/// constant.
template <int kEach, class Visit>
__device__ void for_each_group(std::int64_t first, std::int64_t end, std::int64_t step,
                               const Visit& visit) {
  for (auto i = first; i < end; i += step) {
    if (i + kEach <= end) {
      visit(i, std::integral_constant<int, kEach>());
    } else {
      for (auto j = i; j < end; ++j) visit(j, std::integral_constant<int, 1>());
    }
  }
}

/// BroadcastWalk as a kernel takes it.
template <int kOperands>
struct ElementOffsets {
  static constexpr int kMostAxes = 8;
  int axes = 0;
  std::int64_t elements = 0;
  std::int64_t sizes[kMostAxes] = {};
  std::int64_t strides[kMostAxes][kOperands] = {};

  explicit ElementOffsets(const BroadcastWalk<kOperands>& walk)
      : axes(static_cast<int>(walk.sizes.size())), elements(walk.elements) {
    for (std::size_t axis = 0; axis < walk.sizes.size(); ++axis) {
      sizes[axis] = walk.sizes[axis];
      std::copy(walk.strides[axis].begin(), walk.strides[axis].end(), strides[axis]);
    }
  }

  /// Elements from each operand's first to the one that belongs to element i of the output.
  __device__ void at(std::int64_t i, std::int64_t (&offsets)[kOperands]) const {
    for (int k = 0; k < kOperands; ++k) offsets[k] = 0;
    for (int axis = axes - 1; axis > 0; --axis) {
      const std::int64_t rest = i / sizes[axis], index = i - rest * sizes[axis];
      i = rest;
      for (int k = 0; k < kOperands; ++k) offsets[k] += index * strides[axis][k];
    }
    for (int k = 0; k < kOperands && axes > 0; ++k) offsets[k] += i * strides[0][k];
  }

  /// True when operand k is one element for all of the output.
  bool single(int k) const { return reach(k) == 1; }
  /// True when each group of four output elements, from a multiple of four on, is contiguous and
  /// aligned to four elements in every operand that is not single. With one axis the last group
  /// may have fewer elements.
  bool in_fours() const {
    if (axes == 0) return true;
    const int last = axes - 1;
    if (last > 0 && sizes[last] % 4 != 0) return false;
    for (int k = 0; k < kOperands; ++k) {
      if (k > 0 && single(k)) continue;
      if (strides[last][k] != 1) return false;
      for (int axis = 0; axis < last; ++axis) {
        if (strides[axis][k] % 4 != 0) return false;
      }
    }
    return true;
  }
  /// Elements of the memory that operand k reaches.
  std::int64_t reach(int k) const {
    std::int64_t last = elements > 0 ? 1 : 0;
    for (int axis = 0; axis < axes; ++axis) last += (sizes[axis] - 1) * strides[axis][k];
    return elements > 0 ? last : 0;
  }
};

/// The walk of a node's output and inputs, in this order. Refused beyond kMostAxes axes.
template <int kOperands>
ElementOffsets<kOperands> offsets_of(const KernelQuery& query) {
  const Shape& y = query.outputs[0].spec.shape;
  std::array<Dims, kOperands> strides = {operand_strides(query.outputs[0], y)};
  for (std::size_t k = 1; k < kOperands; ++k) strides[k] = operand_strides(query.inputs[k - 1], y);
  return ElementOffsets<kOperands>(BroadcastWalk<kOperands>(y, strides));
}

inline Verdict accepts_rank(const KernelQuery& query) {
  if (query.outputs[0].spec.shape.rank() <= ElementOffsets<1>::kMostAxes) return Verdict::yes();
  return Verdict::no("takes tensors of up to 8 dimensions");
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
