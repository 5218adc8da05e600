// Textures and surfaces: the texels of a read and their weights, as the CUDA C++ Programming Guide
// describes them in "Texture Fetching". Weights of a linear filter have 8 bits of fraction. Layers
// and the faces of a cube are slices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "backends/cuda/plain/services.h"

namespace triptych::cuda::plain {

enum class ChannelKind : std::uint8_t { Signed, Unsigned, Float };
enum class AddressMode : std::uint8_t { Wrap, Clamp, Mirror, Border };

/// Texels in memory: rows, and slices of rows.
struct TexelArray {
  std::string name;  ///< for messages
  std::byte* data = nullptr;
  std::array<std::int64_t, 3> size = {1, 1, 1};  ///< texels along x and y, slices
  std::size_t row_bytes = 0, slice_bytes = 0;
  TextureShape shape = TextureShape::Plane;
  ChannelKind kind = ChannelKind::Float;
  unsigned channels = 1, channel_bytes = 4;

  std::size_t texel_bytes() const { return std::size_t{channels} * channel_bytes; }
  std::byte* texel(std::int64_t x, std::int64_t y, std::int64_t slice) const {
    return data + static_cast<std::size_t>(slice) * slice_bytes +
           static_cast<std::size_t>(y) * row_bytes + static_cast<std::size_t>(x) * texel_bytes();
  }
};

struct Texture {
  TexelArray texels;
  std::array<AddressMode, 3> address = {AddressMode::Clamp, AddressMode::Clamp, AddressMode::Clamp};
  bool is_linear = false;               ///< filtered, instead of the nearest texel
  bool normalizes_coordinates = false;  ///< they run from 0 to 1
  bool normalizes_values = false;       ///< integers are read as floats from 0 or -1 to 1
  std::array<float, 4> border{};

  bool reads_floats() const { return normalizes_values || texels.kind == ChannelKind::Float; }
};

/// Textures and surfaces of a program by their objects.
struct TextureTable {
  std::map<std::uint64_t, Texture> textures;
  std::map<std::uint64_t, TexelArray> surfaces;
};

/// The texels that a read takes, with weights above 0 and a sum of 1.
struct Taps {
  struct Tap {
    const std::byte* texel = nullptr;  ///< nullptr: the border
    float weight = 1;
  };
  std::array<Tap, 8> taps;
  unsigned count = 0;
};

/// The mistake in a read. Empty: none.
std::string mistake_in(const Texture& texture, const TextureRead& read);
/// Texels of a read without a mistake.
Taps taps_of(const Texture& texture, const TextureRead& read);
/// Four channels, as bits of a float where the texture reads floats, else as integers. Missing ones
/// are 0.
std::array<std::uint32_t, 4> mix(const Texture& texture, const Taps& taps);

/// Reads one float of a plane without filtering, as the functions above. False: another read, or a
/// mistake.
bool read_single(const Texture& texture, const TextureRead& read, std::uint32_t* channels);

/// The mistake in an access to a surface, with the boundary mode of a trap. Empty: none.
std::string mistake_in(const TexelArray& surface, const SurfaceAccess& access);
/// The bytes of an access without a mistake. nullptr: outside, where reads give 0.
std::byte* bytes_of(const TexelArray& surface, const SurfaceAccess& access);

}  // namespace triptych::cuda::plain
