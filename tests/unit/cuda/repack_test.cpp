// Kernels between the project's tensors and a library's, in the emulation, every access
// checked.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/repack.h"

#include <gmock/gmock.h>

#include <cmath>

#include "backends/cuda/emulation/emulated_device.h"
#include "backends/cuda/kernels/device_table.h"
#include "core/base/float16.h"

namespace triptych::cuda {
namespace {

using testing::ElementsAreArray;

/// Both builds of the kernels. The counted one checks every access.
struct Build {
  const char* mode;
  const Repacking& (*functions)();
};

class Repack : public testing::TestWithParam<Build> {
 protected:
  /// Values of `filled` elements after `run` with the device addresses of x and of them.
  template <class T, class Run>
  std::vector<T> result(const std::vector<float>& x, std::size_t elements, const Run& run) {
    const auto from = copy_to_device(device, x);
    const auto to = copy_to_device(device, std::vector<T>(elements, T{}));
    device.submit(0, [&](Stream* stream) {
      run(stream, reinterpret_cast<const float*>(from->data()), reinterpret_cast<T*>(to->data()));
    });
    device.synchronize();
    std::vector<T> y(elements);
    device.download(reinterpret_cast<std::byte*>(y.data()), to->data(), elements * sizeof(T));
    return y;
  }

  const Repacking& f = GetParam().functions();
  emulation::EmulatedDevice device{{.threads = 2, .extra = {{"emulation", GetParam().mode}}}};
};
INSTANTIATE_TEST_SUITE_P(Builds, Repack,
                         testing::Values(Build{"plain", &emulated::repacking},
                                         Build{"checked", &counted::repacking}),
                         [](const auto& tested) { return tested.param.mode; });

std::vector<float> numbered(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 0.01F;
  return values;
}

std::vector<float> widened(const std::vector<BFloat16>& values) {
  std::vector<float> wide;
  for (const auto value : values) wide.push_back(static_cast<float>(value));
  return wide;
}

constexpr ImageBlock kBlocks[] = {{2, 3, 5, 15},  {1, 1, 7, 7},     {3, 40, 33, 2000},
                                  {2, 33, 1, 33}, {2, 1, 100, 300}, {1, 64, 64, 64 * 64},
                                  {0, 3, 5, 15}};

/// Calls visit(index as the block lies, index packed, channel).
template <class Visit>
void for_each_element(const ImageBlock& block, const Visit& visit) {
  for (std::int64_t n = 0; n < block.images; ++n) {
    for (std::int64_t c = 0; c < block.channels; ++c) {
      for (std::int64_t p = 0; p < block.plane; ++p) {
        visit(static_cast<std::size_t>(n * block.stride + c * block.plane + p),
              static_cast<std::size_t>((n * block.plane + p) * block.channels + c),
              static_cast<std::size_t>(c));
      }
    }
  }
}

std::int64_t span(const ImageBlock& block) { return block.images == 0 ? 0 : block.span(); }

TEST_P(Repack, packs_with_the_channels_innermost) {
  for (const auto& block : kBlocks) {
    const auto x = numbered(span(block));
    std::vector<float> expected(static_cast<std::size_t>(block.elements()));
    for_each_element(block, [&](auto at, auto packed, auto) { expected[packed] = x[at]; });
    EXPECT_THAT(result<float>(x, expected.size(),
                              [&](Stream* s, const float* from, float* to) {
                                f.pack(s, from, to, block, false);
                              }),
                ElementsAreArray(expected));
    for (auto& value : expected) value = round_to_bf16(value);
    EXPECT_THAT(result<float>(x, expected.size(),
                              [&](Stream* s, const float* from, float* to) {
                                f.pack(s, from, to, block, true);
                              }),
                ElementsAreArray(expected));
  }
}

TEST_P(Repack, unpacks_with_bias_and_relu_and_keeps_the_gaps) {
  for (const auto& block : kBlocks) {
    const auto x = numbered(block.elements());
    std::vector<float> bias(static_cast<std::size_t>(block.channels));
    for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = c % 2 == 0 ? 0.5F : -40.0F;
    const auto on_device = copy_to_device(device, bias);
    const ChannelFinish finish = {reinterpret_cast<const float*>(on_device->data()), true};
    std::vector<float> expected(static_cast<std::size_t>(span(block)));
    std::vector<float> plain = expected;
    for_each_element(block, [&](auto at, auto packed, auto channel) {
      plain[at] = x[packed];
      expected[at] = std::fmax(x[packed] + bias[channel], 0.0F);
    });
    EXPECT_THAT(result<float>(x, expected.size(),
                              [&](Stream* s, const float* from, float* to) {
                                f.unpack(s, from, to, block, finish);
                              }),
                ElementsAreArray(expected));
    EXPECT_THAT(result<float>(x, expected.size(),
                              [&](Stream* s, const float* from, float* to) {
                                f.unpack(s, from, to, block, {});
                              }),
                ElementsAreArray(plain));
    EXPECT_THAT(result<float>(x, expected.size(),
                              [&](Stream* s, const float* from, float* to) {
                                f.unpack(s, from, to, block, {});
                                f.finish(s, to, block, finish);
                              }),
                ElementsAreArray(expected));
  }
}

constexpr ImageBlock kWholePieces[] = {{2, 8, 5, 45}, {3, 24, 36, 24 * 36}, {2, 16, 1, 16}};

TEST_P(Repack, packs_in_bfloat16) {
  std::vector<ImageBlock> blocks(std::begin(kBlocks), std::end(kBlocks));
  blocks.insert(blocks.end(), std::begin(kWholePieces), std::end(kWholePieces));
  for (const auto& block : blocks) {
    const auto x = numbered(span(block));
    std::vector<float> expected(static_cast<std::size_t>(block.elements()));
    for_each_element(block,
                     [&](auto at, auto packed, auto) { expected[packed] = round_to_bf16(x[at]); });
    const auto y = result<BFloat16>(
        x, expected.size(),
        [&](Stream* s, const float* from, BFloat16* to) { f.pack_bf16(s, from, to, block); });
    EXPECT_THAT(widened(y), ElementsAreArray(expected));
  }
}

/// Biases that cut some elements at 0.
std::vector<float> biases(std::int64_t channels) {
  std::vector<float> bias;
  for (std::int64_t c = 0; c < channels; ++c) {
    bias.push_back(c % 2 == 0 ? static_cast<float>(c) / 4 : -90.0F);
  }
  return bias;
}

TEST_P(Repack, unpacks_bfloat16_with_bias_and_relu) {
  for (const auto& block :
       {ImageBlock{2, 40, 9, 363}, ImageBlock{3, 300, 9, 2700}, ImageBlock{1, 5, 31, 155},
        ImageBlock{2, 7, 1, 7}, ImageBlock{2, 33, 70, 2310}, ImageBlock{0, 3, 5, 15}}) {
    const auto x = numbered(block.elements());
    const auto bias = biases(block.channels);
    const auto on_device = copy_to_device(device, bias);
    const auto narrow = copy_to_device(device, std::vector<BFloat16>(x.size()));
    const ChannelFinish finish = {reinterpret_cast<const float*>(on_device->data()), true};
    std::vector<float> expected(static_cast<std::size_t>(span(block)));
    for_each_element(block, [&](auto at, auto packed, auto channel) {
      expected[at] = std::fmax(round_to_bf16(x[packed]) + bias[channel], 0.0F);
    });
    EXPECT_THAT(result<float>(x, expected.size(),
                              [&](Stream* s, const float* from, float* to) {
                                f.round(s, from, narrow->data(), block.elements());
                                f.unpack_bf16(s, narrow->data(), to, block, finish);
                              }),
                ElementsAreArray(expected));
  }
}

TEST_P(Repack, places_bfloat16_with_bias_and_relu) {
  constexpr std::int64_t kRows = 19, kChannels = 40, kPitch = 56;
  const auto x = numbered(kRows * kChannels);
  const auto bias = biases(kChannels);
  const auto on_device = copy_to_device(device, bias);
  const auto narrow = copy_to_device(device, std::vector<BFloat16>(x.size()));
  const ChannelFinish finish = {reinterpret_cast<const float*>(on_device->data()), true};
  std::vector<float> expected((kRows - 1) * kPitch + kChannels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto row = i / kChannels, channel = i % kChannels;
    expected[row * kPitch + channel] =
        round_to_bf16(std::fmax(round_to_bf16(x[i]) + bias[channel], 0.0F));
  }
  const auto y =
      result<BFloat16>(x, expected.size(), [&](Stream* s, const float* from, BFloat16* to) {
        f.round(s, from, narrow->data(), kRows * kChannels);
        f.place_bf16(s, narrow->data(), to, {kRows, kChannels, kPitch}, finish);
      });
  EXPECT_THAT(widened(y), ElementsAreArray(expected));
}

TEST_P(Repack, rounds_elements_to_bfloat16) {
  const auto x = numbered(1000);
  const auto y = result<BFloat16>(
      x, x.size(), [&](Stream* s, const float* from, BFloat16* to) { f.round(s, from, to, 1000); });
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(static_cast<float>(y[i]), round_to_bf16(x[i]));
  }
}

}  // namespace
}  // namespace triptych::cuda
