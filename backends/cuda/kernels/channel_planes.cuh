// Tensors [N, C, ...] as planes of channels: common part of batch normalisation and its gradient.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/channel_tiles.cuh"
#include "backends/cuda/kernels/operand_span.h"
#include "backends/cuda/kernels/reduction.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

inline constexpr std::int64_t kWarps = kBlock / kLanes;

/// Tensors [N, C, ...] as planes. `parts` blocks of threads share a channel, so that few channels
/// fill a GPU, too.
struct ChannelPlanes {
  std::int64_t batch = 0, channels = 0, plane = 0;
  std::int64_t blocks = 0;  ///< of the tree per channel
  std::int64_t parts = 1;

  explicit ChannelPlanes(const Shape& x)
      : batch(x[0]), channels(x[1]), plane(x.elements_between(2, x.rank())) {
    blocks = batch * reduction_blocks(plane);
    parts = parts_for(kWarps);
  }
  /// For kernels whose warps work on kEach blocks of the tree at once.
  template <int kEach>
  ChannelPlanes by_teams() const {
    auto planes = *this;
    planes.parts = parts_for(kWarps * kEach);
    return planes;
  }
  /// For one block of threads per channel.
  ChannelPlanes whole_channels() const {
    auto planes = *this;
    planes.parts = 1;
    return planes;
  }
  LaunchShape shape() const {
    return {{static_cast<unsigned>(channels * parts)}, {kBlock}, sizeof(FoldSpace<float>)};
  }
  std::size_t result_bytes() const {
    return static_cast<std::size_t>(channels * blocks) * sizeof(float);
  }

  __device__ std::int64_t channel() const { return blockIdx.x / parts; }
  /// True when this thread writes the values of a channel.
  __device__ bool is_first() const { return blockIdx.x % parts == 0 && threadIdx.x == 0; }
  TRIPTYCH_HOST_DEVICE float elements() const { return static_cast<float>(batch * plane); }
  /// Elements of a block of the tree.
  __device__ std::int64_t elements_of(std::int64_t block) const {
    const std::int64_t rest = plane - block % reduction_blocks(plane) * kReductionBlock;
    return rest < kReductionBlock ? rest : kReductionBlock;
  }

  /// Calls visit(block, image, first, count) for the blocks of the tree that belong to this team.
  /// Teams without a block get one beyond the end, without elements.
  template <int kEach, class Visit>
  __device__ void for_each_block(const Visit& visit) const {
    const std::int64_t per_plane = reduction_blocks(plane);
    const std::int64_t warp = blockIdx.x % parts * kWarps + warp_of_block();
    for_each_of_team<kEach>(warp, parts * kWarps, blocks, [&](auto block, bool is_inside) {
      const std::int64_t first = block % per_plane * kReductionBlock;
      const std::int64_t rest = is_inside ? plane - first : 0;
      visit(block, block / per_plane, first, rest < kReductionBlock ? rest : kReductionBlock);
    });
  }

 private:
  /// So that `at_once` blocks of the tree keep a block of threads busy.
  std::int64_t parts_for(std::int64_t at_once) const {
    constexpr std::int64_t kEnough = 2048;
    const auto wanted = kEnough / std::max<std::int64_t>(channels, 1);
    return std::max<std::int64_t>(std::min(wanted, (blocks + at_once - 1) / at_once), 1);
  }
};

/// A tensor with images that may have gaps between them.
template <class T>
struct Images {
  Global<T> data;
  std::int64_t stride = 0;

  /// The elements of a plane from `first` on.
  __device__ Global<T> at(const ChannelPlanes& planes, std::int64_t image,
                          std::int64_t first) const {
    return data.from(image * stride + planes.channel() * planes.plane + first);
  }
};

/// How an operand's images lie.
struct ImageSpan {
  std::int64_t stride = 0, span = 0;

  explicit ImageSpan(const Operand& operand)
      : stride(operand.outer_stride), span(span_of(operand)) {}
  template <class T>
  Images<T> over(T* data) const {
    return {{data, span}, stride};
  }
};

/// Results of the tree per channel.
struct ChannelResults {
  Global<float> data;
  std::int64_t blocks = 0;

  /// `value` is that of the team's member 0.
  template <int kEach>
  __device__ void put(std::int64_t channel, std::int64_t block, float value) const {
    if (FoldTeam<kEach>::member() == 0 && block < blocks) data[channel * blocks + block] = value;
  }
};

/// The fold of a channel's results, by every thread of the block.
__device__ inline float total_of(const ChannelPlanes& planes, Global<const float> results,
                                 FoldSpace<float>& space) {
  return fold_results<SumOf<float>>(results.from(planes.channel() * planes.blocks), planes.blocks,
                                    space);
}

inline Verdict accepts_dense_vectors(const KernelQuery& query) {
  for (const auto operands : {query.inputs, query.outputs}) {
    for (const auto& operand : operands) {
      if (operand.spec.shape.rank() < 2 && !operand.is_dense()) {
        return Verdict::no("needs dense vectors");
      }
    }
  }
  return Verdict::yes();
}

/// Calls read(i) for the elements i, i + 1, ... of a block of the tree, kEach at a time, and
/// write(i, its result). Two reads start before the first write, because nvcc must assume that the
/// write changes their operands.
template <int kEach, class Read, class Write>
__device__ void for_each_element(std::int64_t count, const Read& read, const Write& write) {
  const std::int64_t step = kEach * kLanes;
  std::int64_t i = kEach * lane_of_warp();
  for (; i + step < count; i += 2 * step) {
    const auto now = read(i), next = read(i + step);
    write(i, now);
    write(i + step, next);
  }
  if (i < count) write(i, read(i));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
