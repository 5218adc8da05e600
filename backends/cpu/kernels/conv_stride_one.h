// Convolutions of stride 1 as Conv and ConvTranspose see them: the second is the gradient of the
// input of the first, which is a convolution with taps that run backwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "core/ops/conv_geometry.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

struct StrideOneConv {
  std::int64_t batch = 1, in_channels = 1, out_channels = 1;
  std::int64_t in[2] = {1, 1}, out[2] = {1, 1};
  std::int64_t kernel[2] = {1, 1}, dilation[2] = {1, 1};
  std::int64_t pad[2] = {0, 0};                ///< before the first row and column, may be negative
  std::int64_t out_stride = 0, in_stride = 0;  ///< of the weights, along those channels
  bool flipped = false;                        ///< taps run backwards

  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  /// Columns of a padded row, and additional rows of the input for one output row.
  std::int64_t pitch() const { return out[1] + (kernel[1] - 1) * dilation[1]; }
  std::int64_t halo() const { return (kernel[0] - 1) * dilation[0]; }
};

/// Convolutions and gradients of weights that the tile unit takes: one group, a stride of 1 or
/// windows that tile the larger image, and taps within the size of the images.
Verdict accepts_on_tiles(const ConvGeometry& g);
/// Whether the tile unit is there, and has enough channels to pay.
Verdict worth_on_tiles(const ConvGeometry& g);

/// Wants a stride of 1. `g` of a transposed convolution is the convolution that has it as input
/// gradient. `w_stride`: elements from one index of the weights' first axis to the next.
StrideOneConv stride_one_conv(const ConvGeometry& g, bool transposed, std::int64_t w_stride);

/// The same where the windows tile the larger image: each tap of one of its channels is a channel
/// of its own, of the size of the smaller image.
StrideOneConv conv_of_tiles(const ConvGeometry& g, bool transposed, std::int64_t w_stride);

/// Whether a convolution on the tile unit takes x channels last, `in_word` of which are one word.
/// Words of channels must fill the steps, so that none reads the next position's, and taps stay
/// within the slack behind the last image.
ChannelsLastOperands channels_last_on_tiles(const StrideOneConv& conv, std::int64_t in_word);

/// How the words of a patch are cut into steps of the tile unit. A band of x is planes of a few
/// channels, in which the words of a position stand together.
class PatchSteps {
 public:
  /// `words`: of the channels. `follow`: the words of the next position follow; a row of taps is
  /// then cut into as few steps as it fills, where one plane holds all channels.
  PatchSteps(const StrideOneConv& conv, std::int64_t words, bool follow);

  std::int64_t planes() const { return planes_; }
  std::int64_t position_words() const { return position_words_; }  ///< in a plane
  std::int64_t depth() const { return depth_; }                    ///< words in a step
  std::int64_t count() const { return count_; }
  /// The step that multiplies word k of a tap's channels, and the word's number there.
  std::array<std::int64_t, 2> place_of(std::int64_t tap, std::int64_t k) const;
  /// Bytes from a patch to where each step begins. `line`: bytes from a position to the next.
  /// `pitch`: positions from a row to the next. `plane`: bytes from a plane to the next.
  std::vector<std::int64_t> offsets(std::int64_t line, std::int64_t pitch,
                                    std::int64_t plane) const;

 private:
  std::int64_t taps_[2], dilation_[2];
  std::int64_t planes_, position_words_;
  std::int64_t row_steps_ = 0;  ///< for a row of taps. 0: the taps have steps of their own
  std::int64_t depth_, count_;
};

}  // namespace triptych::cpu
