// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/textures.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/float16.h"

namespace triptych::cuda::plain {
namespace {

constexpr std::int64_t kOutside = -1;
constexpr float kWeightSteps = 256;
constexpr float kMostCoordinate = 1 << 30;

/// Up to two texels along an axis.
struct AxisTaps {
  std::array<std::int64_t, 2> index{};
  std::array<float, 2> weight = {1, 0};
  unsigned count = 1;
};

const char* name_of(TextureShape shape) {
  switch (shape) {
    case TextureShape::Elements:
      return "linear memory (tex1Dfetch)";
    case TextureShape::Line:
      return "1-D";
    case TextureShape::Plane:
      return "2-D";
    case TextureShape::Volume:
      return "3-D";
    case TextureShape::LineLayers:
      return "1-D with layers";
    case TextureShape::PlaneLayers:
      return "2-D with layers";
    case TextureShape::Cube:
      return "a cube map";
    case TextureShape::CubeLayers:
      return "a cube map with layers";
  }
  return "";
}

std::int64_t index_in(std::int64_t index, std::int64_t size, AddressMode mode) {
  if (index >= 0 && index < size) return index;
  switch (mode) {
    case AddressMode::Wrap:
      return (index % size + size) % size;
    case AddressMode::Mirror: {
      const auto place = (index % (2 * size) + 2 * size) % (2 * size);
      return place < size ? place : 2 * size - 1 - place;
    }
    case AddressMode::Border:
      return kOutside;
    case AddressMode::Clamp:
      break;
  }
  return std::clamp<std::int64_t>(index, 0, size - 1);
}

AxisTaps along(const Texture& texture, float coordinate, std::int64_t size, AddressMode mode) {
  const bool repeats = mode == AddressMode::Wrap || mode == AddressMode::Mirror;
  if (repeats && !texture.normalizes_coordinates) mode = AddressMode::Clamp;
  float at = texture.normalizes_coordinates ? coordinate * static_cast<float>(size) : coordinate;
  if (std::isnan(at)) at = 0;
  at = std::clamp(at, -kMostCoordinate, kMostCoordinate);
  AxisTaps taps;
  if (!texture.is_linear) {
    const auto whole = static_cast<std::int64_t>(at);
    taps.index[0] = index_in(at < static_cast<float>(whole) ? whole - 1 : whole, size, mode);
    return taps;
  }
  const float low = std::floor(at - 0.5F);
  const float high_weight = std::round((at - 0.5F - low) * kWeightSteps) / kWeightSteps;
  const auto first = static_cast<std::int64_t>(low);
  taps.index = {index_in(first, size, mode), index_in(first + 1, size, mode)};
  taps.weight = {1 - high_weight, high_weight};
  taps.count = 2;
  return taps;
}

/// A direction as a face of a cube and coordinates from 0 to 1 on it.
struct OnFace {
  std::int64_t face;
  float x, y;
};
OnFace on_face(const float (&at)[3]) {
  const auto [x, y, z] = at;
  const float ax = std::abs(x), ay = std::abs(y), az = std::abs(z);
  const auto place = [](std::int64_t face, float major, float s, float t) {
    return OnFace{face, (s / major + 1) / 2, (t / major + 1) / 2};
  };
  if (ax >= ay && ax >= az) return x >= 0 ? place(0, ax, -z, -y) : place(1, ax, z, -y);
  if (ay >= az) return y >= 0 ? place(2, ay, x, z) : place(3, ay, x, -z);
  return z >= 0 ? place(4, az, x, -y) : place(5, az, -x, -y);
}

void add_taps(Taps& all, const Texture& texture, const AxisTaps& x, const AxisTaps& y,
              const AxisTaps& z) {
  for (unsigned k = 0; k < z.count; ++k) {
    for (unsigned j = 0; j < y.count; ++j) {
      for (unsigned i = 0; i < x.count; ++i) {
        const float weight = x.weight[i] * y.weight[j] * z.weight[k];
        if (weight == 0) continue;
        const bool inside = std::min({x.index[i], y.index[j], z.index[k]}) != kOutside;
        all.taps[all.count++] = {
            inside ? texture.texels.texel(x.index[i], y.index[j], z.index[k]) : nullptr, weight};
      }
    }
  }
}

float float_channel(const TexelArray& texels, const std::byte* at, bool normalizes) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, texels.channel_bytes);
  if (texels.kind == ChannelKind::Float) {
    return texels.channel_bytes == 2 ? f16_to_float(static_cast<std::uint16_t>(bits))
                                     : std::bit_cast<float>(bits);
  }
  if (!normalizes) return 0;
  const unsigned width = 8 * texels.channel_bytes;
  if (texels.kind == ChannelKind::Unsigned) {
    return static_cast<float>(bits) / static_cast<float>((1U << width) - 1);
  }
  const auto value = static_cast<std::int32_t>(bits << (32 - width)) >> (32 - width);
  return std::max(-1.0F, static_cast<float>(value) / static_cast<float>((1U << (width - 1)) - 1));
}

std::uint32_t integer_channel(const TexelArray& texels, const std::byte* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, texels.channel_bytes);
  const unsigned unused = 32 - 8 * texels.channel_bytes;
  return texels.kind == ChannelKind::Signed
             ? static_cast<std::uint32_t>(static_cast<std::int32_t>(bits << unused) >> unused)
             : bits;
}

}  // namespace

std::string mistake_in(const Texture& texture, const TextureRead& read) {
  const auto& texels = texture.texels;
  if (texels.shape != read.shape) {
    return fmt::format("reads {} as a texture that is {}; it is {}", texels.name,
                       name_of(read.shape), name_of(texels.shape));
  }
  const bool wants_floats = read.kind == ChannelValue::Float;
  if (wants_floats != texture.reads_floats()) {
    return fmt::format("reads {} as {}, and its texels are read as {}", texels.name,
                       wants_floats ? "floats" : "integers", wants_floats ? "integers" : "floats");
  }
  if (read.channels > texels.channels) {
    return fmt::format("reads {} channels of {}, which has {}", read.channels, texels.name,
                       texels.channels);
  }
  return {};
}

Taps taps_of(const Texture& texture, const TextureRead& read) {
  const auto& texels = texture.texels;
  const auto& size = texels.size;
  const auto layer = [&](std::int64_t count) {
    return std::clamp<std::int64_t>(read.layer, 0, count - 1);
  };
  AxisTaps x, y, z;
  switch (read.shape) {
    case TextureShape::Elements:
      x.index[0] = read.layer >= 0 && read.layer < size[0] ? read.layer : kOutside;
      break;
    case TextureShape::Cube:
    case TextureShape::CubeLayers: {
      const auto [face, s, t] = on_face(read.at);
      x = along(texture, s, size[0], AddressMode::Clamp);
      y = along(texture, t, size[1], AddressMode::Clamp);
      z.index[0] = face + (read.shape == TextureShape::Cube ? 0 : 6 * layer(size[2] / 6));
      break;
    }
    case TextureShape::Plane:
    case TextureShape::PlaneLayers:
    case TextureShape::Volume:
      y = along(texture, read.at[1], size[1], texture.address[1]);
      [[fallthrough]];
    case TextureShape::Line:
    case TextureShape::LineLayers:
      x = along(texture, read.at[0], size[0], texture.address[0]);
      z.index[0] = layer(size[2]);
      break;
  }
  if (read.shape == TextureShape::Volume) {
    z = along(texture, read.at[2], size[2], texture.address[2]);
  }
  Taps all;
  add_taps(all, texture, x, y, z);
  return all;
}

std::array<std::uint32_t, 4> mix(const Texture& texture, const Taps& taps) {
  const auto& texels = texture.texels;
  std::array<std::uint32_t, 4> words{};
  for (unsigned channel = 0; channel < texels.channels; ++channel) {
    const auto offset = std::size_t{channel} * texels.channel_bytes;
    if (!texture.reads_floats()) {
      const auto* texel = taps.taps[0].texel;
      words[channel] = texel == nullptr ? 0 : integer_channel(texels, texel + offset);
      continue;
    }
    float sum = 0;
    for (unsigned i = 0; i < taps.count; ++i) {
      const auto& [texel, weight] = taps.taps[i];
      const float value = texel == nullptr
                              ? texture.border[channel]
                              : float_channel(texels, texel + offset, texture.normalizes_values);
      sum = taps.count == 1 ? value : sum + weight * value;
    }
    words[channel] = std::bit_cast<std::uint32_t>(sum);
  }
  return words;
}

bool read_single(const Texture& texture, const TextureRead& read, std::uint32_t* channels) {
  const auto& texels = texture.texels;
  const bool is_plane = read.shape == TextureShape::Plane && texels.shape == read.shape;
  const bool is_float = read.kind == ChannelValue::Float && texels.kind == ChannelKind::Float &&
                        texels.channel_bytes == sizeof(float);
  const bool is_single = read.channels == 1 && texels.channels == 1 && !texture.is_linear;
  if (!is_plane || !is_float || !is_single) return false;
  const auto x = along(texture, read.at[0], texels.size[0], texture.address[0]).index[0];
  const auto y = along(texture, read.at[1], texels.size[1], texture.address[1]).index[0];
  const bool is_inside = x != kOutside && y != kOutside;
  std::memcpy(channels,
              is_inside ? static_cast<const void*>(texels.texel(x, y, 0)) : &texture.border[0],
              sizeof(float));
  return true;
}

std::string mistake_in(const TexelArray& surface, const SurfaceAccess& access) {
  if (surface.shape != access.shape) {
    return fmt::format("uses {} as a surface that is {}; it is {}", surface.name,
                       name_of(access.shape), name_of(surface.shape));
  }
  if (access.bytes != surface.texel_bytes()) {
    return fmt::format("uses {} bytes at once of {}, which has texels of {}", access.bytes,
                       surface.name, surface.texel_bytes());
  }
  if (access.x % static_cast<std::int64_t>(access.bytes) != 0) {
    return fmt::format("uses byte {} of a row of {}: x counts bytes, and texels have {}", access.x,
                       surface.name, access.bytes);
  }
  if (access.boundary == SurfaceBoundary::Trap && bytes_of(surface, access) == nullptr) {
    return fmt::format("uses byte {} of row {} in slice {} of {}, which has {} x {} x {} texels",
                       access.x, access.y, access.slice, surface.name, surface.size[0],
                       surface.size[1], surface.size[2]);
  }
  return {};
}

std::byte* bytes_of(const TexelArray& surface, const SurfaceAccess& access) {
  std::array<std::int64_t, 3> at = {access.x / static_cast<std::int64_t>(access.bytes), access.y,
                                    access.slice};
  if (access.x < 0) at[0] = kOutside;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    const auto most = surface.size[axis] - 1;
    if (access.boundary == SurfaceBoundary::Clamp)
      at[axis] = std::clamp<std::int64_t>(at[axis], 0, most);
    if (at[axis] < 0 || at[axis] > most) return nullptr;
  }
  return surface.texel(at[0], at[1], at[2]);
}

}  // namespace triptych::cuda::plain
