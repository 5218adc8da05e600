// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/intensity.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/exact_math.h"

namespace triptych::segmentation {
namespace {

/// Draw of one switch: whether it acts on this patch, and how much.
struct Draw {
  bool acts = false;
  float amount = 0;
};

Draw draw(RandomStream& random, bool enabled, float chance, float low, float high) {
  const bool acts = random.uniform() < chance && enabled;
  return {acts, random.uniform(low, high)};
}

/// Weights of the taps -radius to radius, which are 1 together.
std::vector<float> gaussian_taps(float sigma) {
  const auto radius = static_cast<int>(std::ceil(3 * sigma));
  std::vector<float> taps;
  float sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    const auto distance = static_cast<float>(i) / sigma;
    taps.push_back(exact::exp(-0.5F * distance * distance));
    sum += taps.back();
  }
  for (auto& tap : taps) tap /= sum;
  return taps;
}

/// One line of a plane, continued by reflection, as the mean of its taps.
void blur_line(std::vector<float>& line, const std::vector<float>& taps, float* out,
               std::int64_t size) {
  const auto radius = (std::ssize(taps) - 1) / 2;
  line.resize(static_cast<std::size_t>(size + 2 * radius));
  for (std::int64_t i = -radius; i < size + radius; ++i)
    line[static_cast<std::size_t>(i + radius)] = out[reflect_index(i, size)];
  std::fill(out, out + size, 0.0F);
  for (std::size_t tap = 0; tap < taps.size(); ++tap) {
    const float* const from = line.data() + tap;
    for (std::int64_t i = 0; i < size; ++i) out[i] += taps[tap] * from[i];
  }
}

void blur(Sample& patch, float sigma) {
  const auto taps = gaussian_taps(sigma);
  const auto radius = (std::ssize(taps) - 1) / 2;
  std::vector<float> line, rows;
  for (std::int64_t c = 0; c < patch.channels; ++c) {
    float* const plane = patch.image.data() + c * patch.pixels();
    rows.assign(plane, plane + patch.pixels());
    std::fill(plane, plane + patch.pixels(), 0.0F);
    for (std::int64_t y = 0; y < patch.height; ++y) {
      float* const out = plane + y * patch.width;
      for (std::size_t tap = 0; tap < taps.size(); ++tap) {
        const auto at = y + static_cast<std::int64_t>(tap) - radius;
        const float* const from = rows.data() + reflect_index(at, patch.height) * patch.width;
        for (std::int64_t x = 0; x < patch.width; ++x) out[x] += taps[tap] * from[x];
      }
      blur_line(line, taps, out, patch.width);
    }
  }
}

void change_contrast(std::span<float> values, float factor) {
  double sum = 0;
  for (const float value : values) sum += double{value};
  const auto mean = static_cast<float>(sum / static_cast<double>(values.size()));
  for (float& value : values) value = (value - mean) * factor + mean;
}

void change_gamma(std::span<float> values, float power) {
  const auto [least, greatest] = std::ranges::minmax(values);
  const float range = greatest - least;
  if (!(range > 0)) return;
  for (float& value : values) value = exact::pow((value - least) / range, power) * range + least;
}

/// `amplitude` is that of channel 0. Others have it in the ratio of the deviations.
void add_noise(Sample& patch, float amplitude, const std::vector<float>& deviations,
               std::uint64_t seed) {
  const auto pixels = static_cast<std::size_t>(patch.pixels());
  auto& values = patch.image;
  const auto of_channel = [&](std::size_t channel) {
    if (channel == 0 || deviations.size() == 1) return amplitude;
    return amplitude * (deviations[channel] / deviations[0]);
  };
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const auto bits = random_quad(seed, 0, i / 4);
    const auto count = std::min<std::size_t>(4, values.size() - i);
    for (std::size_t k = 0; k < count; ++k)
      values[i + k] += of_channel((i + k) / pixels) * normal_from_bits(bits[k]);
  }
}

/// Calls `change` with the values of each channel in turn.
template <class Change>
void change_channels(Sample& patch, const Change& change) {
  const auto pixels = static_cast<std::size_t>(patch.pixels());
  for (std::size_t c = 0; c < static_cast<std::size_t>(patch.channels); ++c)
    change(std::span(patch.image).subspan(c * pixels, pixels));
}

}  // namespace

float normal_from_bits(std::uint32_t bits) {
  // The quantile of (u + 1/2) 2^-24 by the rational approximations PPND7 of Wichura, "Algorithm AS
  // 241", 1988. Its third one is for tails thinner than these.
  const float centred = static_cast<float>(static_cast<std::int32_t>(bits >> 8) - (1 << 23));
  const float q = (centred + 0.5F) * 0x1p-24F;
  if (exact::absolute(q) <= 0.425F) {
    const float r = 0.180625F - q * q;
    return q * (((59.109374720F * r + 159.29113202F) * r + 50.434271938F) * r + 3.3871327179F) /
           (((67.187563600F * r + 78.757757664F) * r + 17.895169469F) * r + 1.0F);
  }
  const float r = std::sqrt(-exact::log(0.5F - exact::absolute(q))) - 1.6F;
  const float tail =
      (((0.17023821103F * r + 1.3067284816F) * r + 2.7568153900F) * r + 1.4234372777F) /
      ((0.12021132975F * r + 0.73700164250F) * r + 1.0F);
  return exact::with_sign(tail, q);
}

void change_intensity(Sample& patch, const IntensityOptions& options, RandomStream& random) {
  const auto blurred = draw(random, options.blur, 0.2F, 0.5F, 1.5F);
  const auto brightened = draw(random, options.brightness, 0.15F, 0.7F, 1.3F);
  const auto contrasted = draw(random, options.contrast, 0.15F, 0.65F, 1.5F);
  const auto bent = draw(random, options.gamma, 0.3F, 0.7F, 1.5F);
  const auto disturbed = draw(random, options.noise, 0.15F, 0, 0.1F * options.deviation[0]);
  const std::uint64_t noise_seed = random.bits();
  if (blurred.acts) blur(patch, blurred.amount);
  if (brightened.acts)
    for (float& value : patch.image) value *= brightened.amount;
  if (contrasted.acts)
    change_channels(patch, [&](auto values) { change_contrast(values, contrasted.amount); });
  if (bent.acts) change_channels(patch, [&](auto values) { change_gamma(values, bent.amount); });
  if (disturbed.acts) add_noise(patch, disturbed.amount, options.deviation, noise_seed);
}

}  // namespace triptych::segmentation
