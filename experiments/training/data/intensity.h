// The values of a training patch changed at random, as other slides, lamps and cameras would have
// changed them. Chances and ranges follow nnU-Net's, where it has two the stronger (Isensee et al.,
// "nnU-Net: a self-configuring method for deep learning-based biomedical image segmentation",
// 2021). Only operations with the same bits on every machine are used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

/// In the order of their application.
struct IntensityOptions {
  bool blur = false;        ///< Gaussian, of 0.5 to 1.5 pixels: one patch in five
  bool brightness = false;  ///< times 0.7 to 1.3: three patches in twenty
  bool contrast = false;    ///< distance from the channel's mean times 0.65 to 1.5: likewise
  /// Power 0.7 to 1.5 of the values between the channel's least and greatest: three in ten.
  bool gamma = false;
  bool noise = false;  ///< Gaussian, of up to a tenth of `deviation`: three in twenty
  std::vector<float> deviation = {1};  ///< of the images: for each channel, or for all
};

/// Position `i` of a line of `size` pixels continued by reflection without repeating its ends:
/// ... 2 1 | 0 1 2 ... size-1 | size-2 ...
constexpr std::int64_t reflect_index(std::int64_t i, std::int64_t size) {
  if (size == 1) return 0;
  const auto period = 2 * (size - 1);
  i = (i % period + period) % period;
  return i < size ? i : period - i;
}

/// Changes the image of `patch`, each channel in its own scale by the same amount. Every switch
/// draws its numbers whether it is on or off.
void change_intensity(Sample& patch, const IntensityOptions& options, RandomStream& random);

/// The standard normal number of 32 random bits, within 1e-5 of the true quantile.
float normal_from_bits(std::uint32_t bits);

}  // namespace triptych::segmentation
