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

/// Blocks of the tree of all channels. A warp owns one block of 32 channels: eight threads side by
/// side along the positions, and four pieces of eight channels. So a warp reads 64 bytes of each
/// position.
class PieceFolds {
 public:
  static constexpr int kMembers = 8;  ///< threads of a block of the tree

  explicit PieceFolds(const ChannelPlanes& planes)
      : planes_(planes),
        pieces_(planes.channels / kPieceElements),
        across_(ceil_div(pieces_, kPieces)) {}

  LaunchShape shape() const { return one_dimension(planes_.blocks * across_ * kLanes); }

  __device__ static int member() { return lane_of_warp() % kMembers; }

  /// Calls visit(PieceBlock), by all threads of a warp.
  template <class Visit>
  __device__ void for_each_block(const Visit& visit) const {
    const std::int64_t per_plane = reduction_blocks(planes_.plane);
    for (auto item = global_warp(); item < planes_.blocks * across_; item += all_warps()) {
      const std::int64_t block = item / across_;
      const std::int64_t piece = item % across_ * kPieces + lane_of_warp() / kMembers;
      visit(PieceBlock{block, block / per_plane, block % per_plane * kReductionBlock,
                       piece < pieces_ ? planes_.elements_of(block) : 0, piece * kPieceElements});
    }
  }

  /// Sums in the order of the tree. `terms` has kSums, `results[kSums]`, `begin(channel)`,
  /// `read(image, position, channel)` for a piece, and `add(piece, c, sums)`, which adds its terms
  /// of channel c. A thread has four lanes of the tree, m, m + 8, m + 16 and m + 24.
  template <class Terms>
  __device__ void fold(Terms terms) const {
    for_each_block([&](const PieceBlock& at) {
      if (at.count > 0) terms.begin(at.channel);
      float sums[kLanesEach][kPieceElements][Terms::kSums] = {};
      for (std::int64_t i = member(); i < at.count; i += kLanes) {
        decltype(terms.read(0, 0, 0)) in[kLanesEach] = {};
#pragma unroll
        for (int l = 0; l < kLanesEach; ++l) {
          const std::int64_t position = i + l * kMembers;
          if (position < at.count) in[l] = terms.read(at.image, at.first + position, at.channel);
        }
#pragma unroll
        for (int l = 0; l < kLanesEach; ++l) {
          if (i + l * kMembers >= at.count) continue;
#pragma unroll
          for (int c = 0; c < kPieceElements; ++c) terms.add(in[l], c, sums[l][c]);
        }
      }
#pragma unroll
      for (int c = 0; c < kPieceElements; ++c) {
#pragma unroll
        for (int s = 0; s < Terms::kSums; ++s) {
          const float sum =
              fold_members((sums[0][c][s] + sums[2][c][s]) + (sums[1][c][s] + sums[3][c][s]));
          if (member() == 0 && at.count > 0) {
            terms.results[s][(at.channel + c) * planes_.blocks + at.block] = sum;
          }
        }
      }
    });
  }

 private:
  static constexpr int kLanesEach = kLanes / kMembers, kPieces = kLanes / kMembers;

  /// The last three halvings. The result is that of member 0.
  __device__ static float fold_members(float sum) {
#pragma unroll
    for (unsigned half = kMembers / 2; half > 0; half /= 2) {
      sum += __shfl_down_sync(kWholeWarp, sum, half);
    }
    return sum;
  }

  ChannelPlanes planes_;
  std::int64_t pieces_, across_;  ///< of eight channels, and of a warp's channels
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
