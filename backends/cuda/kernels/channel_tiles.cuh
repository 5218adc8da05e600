// Images written with the channels of a position together, rounded to bfloat16, from kernels that
// read float32 planes: the layout that the products on tensor cores read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "backends/cuda/kernels/bf16_operands.h"
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/elementwise.cuh"
#include "core/base/checked_math.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Images [N, groups * channels, positions] that become [N, positions, pitch]. A thread turns eight
/// channels by kEach positions. Eight threads of a warp lie side by side along the positions, the
/// others at the next pieces of eight channels, so that a warp reads and writes whole sectors.
template <int kEach>
class ChannelTiles {
 public:
  ChannelTiles(const ImageRounding& of, std::int64_t pitch)
      : images_(of.images),
        channels_(of.channels),
        positions_(of.positions),
        pitch_(pitch),
        pieces_(padded(of.channels) / kPieceElements),
        groups_(of.groups),
        across_(ceil_div(of.positions, kEach * kAlongPositions)),
        down_(ceil_div(pieces_, kAlongPieces)) {}

  LaunchShape shape() const {
    const auto warps = images_ * groups_.value() * across_.value() * down_.value();
    return {{static_cast<unsigned>(ceil_div(warps, kBlock / 32))}, {kBlock}, 0};
  }

  /// Calls visit(image, group, piece, position) for the tile of this thread, if it has one. The
  /// piece counts the channels of the group.
  template <class Visit>
  __device__ void for_tile(const Visit& visit) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const auto number = static_cast<std::uint32_t>(global_thread() / 32);  // of a grid's warps
    const std::uint32_t row_of_tiles = across_.divide(number), rest = down_.divide(row_of_tiles);
    const std::uint32_t along = number - row_of_tiles * across_.value();
    const std::int64_t position =
        (std::int64_t{along} * kAlongPositions + lane % kAlongPositions) * kEach;
    const std::int64_t piece =
        (row_of_tiles - rest * down_.value()) * kAlongPieces + lane / kAlongPositions;
    const std::int64_t image = groups_.divide(rest), group = rest - image * groups_.value();
    if (image < images_ && piece < pieces_ && position < positions_) {
      visit(image, group, piece, position);
    }
  }

  /// y = finish(channel, read(image, channel, position)), for kEach positions of a channel. All
  /// reads of a thread start before the first result, so that they do not wait for each other.
  template <class Read, class Finish>
  __device__ void write(const Global<BFloat16>& y, const Read& read, const Finish& finish) const {
    for_tile(
        [&](std::int64_t image, std::int64_t group, std::int64_t piece, std::int64_t position) {
          const std::int64_t in_group = piece * kPieceElements;
          const std::int64_t channel = group * channels_ + in_group;
          decltype(read(image, channel, position)) in[kPieceElements] = {};
#pragma unroll
          for (int c = 0; c < kPieceElements; ++c) {
            if (in_group + c < channels_) in[c] = read(image, channel + c, position);
          }
          Vector<BFloat16, kPieceElements> rounded[kEach];
#pragma unroll
          for (int c = 0; c < kPieceElements; ++c) {
            Vector<float, kEach> values = {};
            if (in_group + c < channels_) values = finish(channel + c, in[c]);
#pragma unroll
            for (int p = 0; p < kEach; ++p) rounded[p][c] = BFloat16(values[p]);
          }
          const std::int64_t first = (group * pieces_ + piece) * kPieceElements;
#pragma unroll
          for (int p = 0; p < kEach; ++p) {
            const std::int64_t row = image * positions_ + position + p;
            y.template store<kPieceElements>(row * pitch_ + first, rounded[p]);
          }
        });
  }

 private:
  static constexpr int kAlongPositions = 8, kAlongPieces = 32 / kAlongPositions;

  std::int64_t images_, channels_, positions_, pitch_;
  std::int64_t pieces_;  ///< of the channels of a group
  Divisor groups_;
  Divisor across_, down_;  ///< tiles of a warp, along positions and pieces
};

/// Eight channels of a position, as they are stored.
using ChannelPiece = Vector<BFloat16, kPieceElements>;

/// Images [N, positions, pitch] in bfloat16.
template <class T>
struct LastImages {
  Global<T> data;
  std::int64_t positions = 0, pitch = 0;

  /// The channels from `channel` on, a multiple of eight.
  __device__ ChannelPiece piece(std::int64_t image, std::int64_t position,
                                std::int64_t channel) const {
    return data.template load<kPieceElements>((image * positions + position) * pitch + channel);
  }
  __device__ void put(std::int64_t image, std::int64_t position, std::int64_t channel,
                      const ChannelPiece& values) const {
    data.template store<kPieceElements>((image * positions + position) * pitch + channel, values);
  }
};

/// An operand that is stored channels last.
struct StoredChannels {
  ChannelsLast format;
  ImageRounding images;  ///< without its arrays

  explicit StoredChannels(const Operand& operand) : format(operand.channels_last.value()) {
    TRIPTYCH_ASSERT(format.pad == 0);  // no reader on a GPU wants zeros around an image
    const auto& shape = operand.spec.shape;
    images.images = shape[0];
    images.channels = shape[1];
    images.positions = shape.elements_between(2, shape.rank());
  }
  template <int kEach>
  ChannelTiles<kEach> tiles() const {
    return {images, format.pitch};
  }
  Global<BFloat16> over(std::byte* data) const {
    return {reinterpret_cast<BFloat16*>(data), span()};
  }
  Global<const BFloat16> over(const std::byte* data) const {
    return {reinterpret_cast<const BFloat16*>(data), span()};
  }
  LastImages<BFloat16> images_over(std::byte* data) const {
    return {over(data), images.positions, format.pitch};
  }
  LastImages<const BFloat16> images_over(const std::byte* data) const {
    return {over(data), images.positions, format.pitch};
  }
  /// Elements from the first to the last.
  std::int64_t span() const {
    return (images.images * images.positions - 1) * format.pitch + images.channels;
  }
};

inline std::optional<StoredChannels> stored_channels(const Operand& operand) {
  if (operand.channels_last) return StoredChannels(operand);
  return std::nullopt;
}

/// True when the contract has the operand rounded where it is stored, and its channels are whole in
/// pieces.
inline bool may_be_rounded(const KernelQuery& query, const Operand& operand) {
  const auto& spec = operand.spec;
  return query.contract == Contract::Bf16 && spec.dtype == DType::F32 && spec.shape.rank() == 4 &&
         spec.shape[1] % kPieceElements == 0;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
