// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/conv_stride_one.h"

#include <algorithm>

#include "backends/cpu/tiles/tile_unit.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {

Verdict accepts_on_tiles(const ConvGeometry& g) {
  if (g.groups != 1) return Verdict::no("has several groups");
  const auto& w = g.window;
  if (w.makes_tiles()) return Verdict::yes();
  for (int axis = 0; axis < 2; ++axis) {
    if (w.stride[axis] != 1) return Verdict::no("has another stride than 1");
    if (w.extent(axis) > 1 + w.in[axis] + w.out[axis])
      return Verdict::no("has taps farther apart than its images are wide");
  }
  return Verdict::yes();
}

Verdict worth_on_tiles(const ConvGeometry& g) {
  if (!tile_unit_missing().empty()) return Verdict::no(tile_unit_missing());
  constexpr std::int64_t fewest = 8;
  return std::max(g.in_channels, g.out_channels) >= fewest
             ? Verdict{true, kOnTileUnit}
             : Verdict::no("fills tiles badly with so few channels");
}

StrideOneConv stride_one_conv(const ConvGeometry& g, bool transposed, std::int64_t w_stride) {
  const auto& w = g.window;
  StrideOneConv conv = {.batch = g.batch,
                        .in_channels = transposed ? g.out_channels : g.in_channels,
                        .out_channels = transposed ? g.in_channels : g.out_channels,
                        .kernel = {w.kernel[0], w.kernel[1]},
                        .dilation = {w.dilation[0], w.dilation[1]},
                        .out_stride = transposed ? g.taps() : w_stride,
                        .in_stride = transposed ? w_stride : g.taps(),
                        .flipped = transposed};
  for (int axis = 0; axis < 2; ++axis) {
    conv.in[axis] = transposed ? w.out[axis] : w.in[axis];
    conv.out[axis] = transposed ? w.in[axis] : w.out[axis];
    conv.pad[axis] = transposed ? w.extent(axis) - 1 - w.pad_begin[axis] : w.pad_begin[axis];
  }
  return conv;
}

StrideOneConv conv_of_tiles(const ConvGeometry& g, bool transposed, std::int64_t w_stride) {
  const auto& w = g.window;
  return {.batch = g.batch,
          .in_channels = transposed ? g.out_channels : g.in_channels * g.taps(),
          .out_channels = transposed ? g.in_channels * g.taps() : g.out_channels,
          .in = {w.out[0], w.out[1]},
          .out = {w.out[0], w.out[1]},
          .out_stride = transposed ? 1 : w_stride,
          .in_stride = transposed ? w_stride : 1};
}

ChannelsLastOperands channels_last_on_tiles(const StrideOneConv& conv, std::int64_t in_word) {
  ChannelsLastOperands takes = {.inputs = {false}};
  const auto words = conv.in_channels / in_word;
  if (conv.in_channels % in_word != 0 || words % ceil_div(words, kTileDepth) != 0) return takes;
  constexpr std::int64_t most_pad = 8, most_extent = 16;
  static_assert(most_pad + most_extent + kTileBlock < kSlackPositions);
  std::int64_t pad = 0;
  for (int axis = 0; axis < 2; ++axis) {
    const auto extent = (conv.kernel[axis] - 1) * conv.dilation[axis];
    const auto behind = conv.out[axis] + extent - conv.pad[axis] - conv.in[axis];
    if (conv.pad[axis] < 0 || extent > most_extent) return takes;
    pad = std::max({pad, conv.pad[axis], behind});
  }
  if (pad > most_pad) return takes;
  takes.inputs[0] = true;
  takes.pad = pad;
  return takes;
}

PatchSteps::PatchSteps(const StrideOneConv& conv, std::int64_t words, bool follow)
    : taps_{conv.kernel[0], conv.kernel[1]},
      dilation_{conv.dilation[0], conv.dilation[1]},
      planes_(ceil_div(words, kTileDepth)),
      position_words_(ceil_div(words, planes_)),
      depth_(position_words_),
      count_(planes_ * conv.taps()) {
  if (!follow || planes_ > 1 || dilation_[1] != 1) return;
  const auto row = taps_[1] * position_words_;
  auto steps = ceil_div(row, kTileDepth);
  while (row % steps != 0) ++steps;
  if (steps >= taps_[1]) return;
  row_steps_ = steps;
  depth_ = row / steps;
  count_ = steps * taps_[0];
}

std::array<std::int64_t, 2> PatchSteps::place_of(std::int64_t tap, std::int64_t k) const {
  if (row_steps_ == 0) return {k / depth_ * taps_[0] * taps_[1] + tap, k % depth_};
  const auto word = tap % taps_[1] * position_words_ + k;
  return {tap / taps_[1] * row_steps_ + word / depth_, word % depth_};
}

std::vector<std::int64_t> PatchSteps::offsets(std::int64_t line, std::int64_t pitch,
                                              std::int64_t plane) const {
  std::vector<std::int64_t> offsets;
  const auto row = line * dilation_[0] * pitch;
  for (std::int64_t step = 0; step < count_; ++step) {
    if (row_steps_ > 0) {
      offsets.push_back(step / row_steps_ * row + step % row_steps_ * depth_ * kTileWordBytes);
    } else {
      const auto tap = step % (taps_[0] * taps_[1]);
      offsets.push_back(step / (taps_[0] * taps_[1]) * plane + tap / taps_[1] * row +
                        tap % taps_[1] * dilation_[1] * line);
    }
  }
  return offsets;
}

}  // namespace triptych::cpu
