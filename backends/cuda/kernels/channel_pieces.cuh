// Images that are stored channels last, read and written by pieces of eight channels: sums per
// channel in the order of the tree (reduction.cuh), and maps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/channel_planes.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Where a thread's elements lie: those of eight channels, in a block of the tree. `count`: of the
/// block, none where there are no such channels.
struct PieceBlock {
  std::int64_t block, image, first, count, channel;
};

/// Blocks of the tree of all channels. A block of four warps owns one block of 32 channels. Eight
/// threads of a warp lie side by side along the positions, and read four pieces of eight channels.
/// So a warp reads 64 bytes of each position. A thread has one lane of the tree.
class PieceFolds {
 public:
  static constexpr int kMembers = 8;  ///< threads of a warp along the positions
  static constexpr int kWarps = kLanes / kMembers;
  static constexpr int kThreads = kWarps * kLanes;

  explicit PieceFolds(const ChannelPlanes& planes)
      : planes_(planes),
        pieces_(planes.channels / kPieceElements),
        across_(ceil_div(pieces_, kPieces)) {}

  LaunchShape shape(std::size_t shared_bytes) const {
    constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
    return {{static_cast<unsigned>(std::min(planes_.blocks * across_, kMostBlocks))},
            {kThreads},
            shared_bytes};
  }

  __device__ static int member() { return lane_of_warp() % kMembers; }
  /// The lane of the tree of the running thread.
  __device__ static int lane() { return warp_of_block() * kMembers + member(); }

  /// Calls visit(PieceBlock), by all threads of a block.
  template <class Visit>
  __device__ void for_each_block(const Visit& visit) const {
    const std::int64_t per_plane = reduction_blocks(planes_.plane);
    for (std::int64_t item = blockIdx.x; item < planes_.blocks * across_; item += gridDim.x) {
      const std::int64_t block = item / across_;
      const std::int64_t piece = item % across_ * kPieces + lane_of_warp() / kMembers;
      visit(PieceBlock{block, block / per_plane, block % per_plane * kReductionBlock,
                       piece < pieces_ ? planes_.elements_of(block) : 0, piece * kPieceElements});
    }
  }

  /// Calls add(read(position)) for the positions of the running thread, in ascending order. kAhead
  /// of them are read before the first is added.
  template <int kAhead, class Read, class Add>
  __device__ static void for_each_position(const PieceBlock& at, const Read& read, const Add& add) {
    for (std::int64_t i = lane(); i < at.count; i += kAhead * kLanes) {
      decltype(read(i)) in[kAhead] = {};
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (i + j * kLanes < at.count) in[j] = read(at.first + i + j * kLanes);
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (i + j * kLanes < at.count) add(in[j]);
      }
    }
  }

  /// Sums of the warps' threads.
  template <int kSums>
  struct Space {
    Shared<float, kWarps * kPieceElements * kSums, kLanes> of_threads;
  };

  /// Sums in the order of the tree. `terms` has kSums, `results[kSums]`, `begin(channel)`,
  /// `read(image, position, channel)` for a piece, and `add(piece, c, sums)`, which adds its terms
  /// of channel c.
  template <class Terms>
  __device__ void fold(Terms terms) const {
    for_each_block([&](const PieceBlock& at) {
      if (at.count > 0) terms.begin(at.channel);
      float sums[kPieceElements][Terms::kSums] = {};
      for_each_position<4>(
          at, [&](std::int64_t position) { return terms.read(at.image, position, at.channel); },
          [&](const auto& in) {
#pragma unroll
            for (int c = 0; c < kPieceElements; ++c) terms.add(in, c, sums[c]);
          });
      fold_threads(at, sums, terms);
    });
  }

 private:
  static constexpr int kPieces = kLanes / kMembers;

  /// The halvings of the tree: 16 and 8 between warps, then 4, 2 and 1 between the members of a
  /// warp. A warp folds two channels of each piece.
  template <class Terms>
  __device__ void fold_threads(const PieceBlock& at,
                               const float (&sums)[kPieceElements][Terms::kSums],
                               const Terms& terms) const {
    constexpr int kSums = Terms::kSums, kEach = kPieceElements / kWarps;
    auto& space = shared<Space<kSums>>();
    const int thread = lane_of_warp(), warp = warp_of_block();
    const auto row = [](int of_warp, int c, int s) {
      return (of_warp * kPieceElements + c) * kSums + s;
    };
    __syncthreads();  // the sums of the block before are read
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) space.of_threads(row(warp, c, s), thread) = sums[c][s];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = warp * kEach + i;
#pragma unroll
      for (int s = 0; s < kSums; ++s) {
        float of_warps[kWarps];
#pragma unroll
        for (int w = 0; w < kWarps; ++w) of_warps[w] = space.of_threads(row(w, c, s), thread);
        const float sum = fold_members((of_warps[0] + of_warps[2]) + (of_warps[1] + of_warps[3]));
        if (member() == 0 && at.count > 0) {
          terms.results[s][(at.channel + c) * planes_.blocks + at.block] = sum;
        }
      }
    }
  }

  /// The last three halvings. The result is that of member 0.
  __device__ static float fold_members(float sum) {
#pragma unroll
    for (unsigned half = kMembers / 2; half > 0; half /= 2) {
      sum += __shfl_down_sync(kWholeWarp, sum, half);
    }
    return sum;
  }

  ChannelPlanes planes_;
  std::int64_t pieces_, across_;  ///< of eight channels, and of a block's channels
};

/// Positions of a thread of a map.
inline constexpr int kMapPositions = 4;

/// Images in planes, read or written by pieces.
template <class T>
struct PlanePieces {
  Images<T> data;
  std::int64_t plane = 0;

  __device__ Vector<float, kPieceElements> read(std::int64_t image, std::int64_t position,
                                                std::int64_t channel) const {
    Vector<float, kPieceElements> piece;
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      piece[c] = data.data[image * data.stride + (channel + c) * plane + position];
    }
    return piece;
  }

  __device__ void put(std::int64_t image, std::int64_t position, std::int64_t channel,
                      const float (&values)[kPieceElements]) const {
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      data.data[image * data.stride + (channel + c) * plane + position] = values[c];
    }
  }
};

/// The same where the channels of a position lie together.
template <class T>
struct LastPieces {
  LastImages<T> data;

  __device__ ChannelPiece read(std::int64_t image, std::int64_t position,
                               std::int64_t channel) const {
    return data.piece(image, position, channel);
  }

  __device__ void put(std::int64_t image, std::int64_t position, std::int64_t channel,
                      const float (&values)[kPieceElements]) const {
    ChannelPiece rounded;
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) rounded[c] = BFloat16(values[c]);
    data.put(image, position, channel, rounded);
  }
};

/// y = finish(channel, operands of that channel) for all channels and positions. A thread owns
/// kMapPositions of a piece. `read(image, position, channel)` gives the operands of a piece, an
/// array of pieces. All reads of a thread start before the first result.
template <class Target, class Read, class Finish>
__device__ void map_pieces(const ChannelTiles<kMapPositions>& tiles, std::int64_t positions,
                           const Target& y, const Read& read, const Finish& finish) {
  tiles.for_tile([&](std::int64_t image, std::int64_t, std::int64_t piece, std::int64_t first) {
    const std::int64_t channel = piece * kPieceElements;
    decltype(read(image, first, channel)) in[kMapPositions] = {};
#pragma unroll
    for (int p = 0; p < kMapPositions; ++p) {
      if (first + p < positions) in[p] = read(image, first + p, channel);
    }
    float values[kMapPositions][kPieceElements];
#pragma unroll
    for (int c = 0; c < kPieceElements; ++c) {
      const auto formula = finish(channel + c);
#pragma unroll
      for (int p = 0; p < kMapPositions; ++p) values[p][c] = formula(in[p], c);
    }
#pragma unroll
    for (int p = 0; p < kMapPositions; ++p) {
      if (first + p < positions) y.put(image, first + p, channel, values[p]);
    }
  });
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
