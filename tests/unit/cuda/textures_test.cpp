// Texels and weights of texture reads, and bytes of accesses to surfaces.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/textures.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace triptych::cuda::plain {
namespace {

/// A texture of floats 0, 1, 2, ... with these sizes.
struct Floats {
  std::vector<float> values;
  Texture texture;

  Floats(TextureShape shape, std::array<std::int64_t, 3> size) {
    for (std::int64_t i = 0; i < size[0] * size[1] * size[2]; ++i) {
      values.push_back(static_cast<float>(i));
    }
    auto& texels = texture.texels;
    texels.name = "the array";
    texels.data = reinterpret_cast<std::byte*>(values.data());
    texels.size = size;
    texels.row_bytes = static_cast<std::size_t>(size[0]) * 4;
    texels.slice_bytes = texels.row_bytes * static_cast<std::size_t>(size[1]);
    texels.shape = shape;
  }
  float read(float x, float y = 0, float z = 0, std::int64_t layer = 0) const {
    const TextureRead read = {1, texture.texels.shape, ChannelValue::Float, 1, layer, {x, y, z}};
    EXPECT_EQ(mistake_in(texture, read), "");
    return std::bit_cast<float>(mix(texture, taps_of(texture, read))[0]);
  }
};

TEST(Texture, the_short_path_reads_the_same_float) {
  Floats plane(TextureShape::Plane, {5, 3, 1});
  auto& texture = plane.texture;
  texture.border = {9, 0, 0, 0};
  const std::vector<float> places = {0,     -0.0F, 0.5F,  1,    1.2F,  4.999F,       5,
                                     -0.1F, -1,    -7.3F, 3e9F, -3e9F, std::nanf("")};
  for (auto mode :
       {AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border}) {
    texture.address = {mode, mode, mode};
    for (const bool is_normalized : {false, true}) {
      texture.normalizes_coordinates = is_normalized;
      for (const float x : places) {
        for (const float y : places) {
          const TextureRead read = {1, TextureShape::Plane, ChannelValue::Float, 1, 0, {x, y, 0}};
          std::uint32_t word = 0;
          ASSERT_TRUE(read_single(texture, read, &word));
          EXPECT_EQ(std::bit_cast<float>(word), plane.read(x, y)) << x << " " << y;
        }
      }
    }
  }
  TextureRead read = {1, TextureShape::Plane, ChannelValue::Integer, 1, 0, {0, 0, 0}};
  std::uint32_t word = 0;
  EXPECT_FALSE(read_single(texture, read, &word));
  read.kind = ChannelValue::Float;
  read.shape = TextureShape::Line;
  EXPECT_FALSE(read_single(texture, read, &word));
  read.shape = TextureShape::Plane;
  texture.is_linear = true;
  EXPECT_FALSE(read_single(texture, read, &word));
}

TEST(Texture, address_modes_lead_back_inside) {
  Floats line(TextureShape::Line, {4, 1, 1});
  line.texture.normalizes_coordinates = true;
  const auto modes = [&](float x) {
    std::vector<float> values;
    for (auto mode :
         {AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border}) {
      line.texture.address[0] = mode;
      values.push_back(line.read(x));
    }
    return values;
  };
  line.texture.border = {9, 0, 0, 0};
  EXPECT_EQ(modes(0.3F), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(modes(1.1F), (std::vector<float>{0, 3, 3, 9}));
  EXPECT_EQ(modes(-0.3F), (std::vector<float>{2, 0, 1, 9}));
  EXPECT_EQ(modes(2.3F), (std::vector<float>{1, 3, 1, 9}));
  EXPECT_EQ(modes(std::nanf("")), (std::vector<float>{0, 0, 0, 0}));
  // Without normalized coordinates wrap and mirror are clamp.
  line.texture.normalizes_coordinates = false;
  EXPECT_EQ(modes(5), (std::vector<float>{3, 3, 3, 9}));
}

TEST(Texture, linear_weights_have_eight_bits) {
  Floats line(TextureShape::Line, {4, 1, 1});
  line.texture.is_linear = true;
  EXPECT_EQ(line.read(1.5F), 1);
  EXPECT_EQ(line.read(1.75F), 1.25F);
  EXPECT_EQ(line.read(1.5F + 0.3F / 256), 1);
  EXPECT_EQ(line.read(1.5F + 0.7F / 256), 1 + 1.0F / 256);
  EXPECT_EQ(line.read(0), 0);
  EXPECT_EQ(line.read(4), 3);
  line.texture.address[0] = AddressMode::Border;
  EXPECT_EQ(line.read(4), 1.5F);
}

TEST(Texture, a_read_takes_the_texels_with_a_weight) {
  Floats volume(TextureShape::Volume, {4, 4, 4});
  volume.texture.is_linear = true;
  const auto count = [&](float x, float y, float z) {
    return taps_of(volume.texture, {1, TextureShape::Volume, ChannelValue::Float, 1, 0, {x, y, z}})
        .count;
  };
  EXPECT_EQ(count(1.5F, 1.5F, 1.5F), 1U);
  EXPECT_EQ(count(1.6F, 1.5F, 1.5F), 2U);
  EXPECT_EQ(count(1.6F, 1.6F, 1.6F), 8U);
  EXPECT_EQ(volume.read(2, 2, 2), (21 + 22 + 25 + 26 + 37 + 38 + 41 + 42) / 8.0F);
}

TEST(Texture, layers_faces_and_elements_are_chosen) {
  const Floats layers(TextureShape::PlaneLayers, {2, 2, 3});
  EXPECT_EQ(layers.read(1.5F, 0.5F, 0, 2), 9);
  EXPECT_EQ(layers.read(1.5F, 0.5F, 0, 7), 9);
  Floats cube(TextureShape::CubeLayers, {2, 2, 12});
  cube.texture.normalizes_coordinates = true;
  // +x, -x, +y, -y, +z, -z: the middle of each face is the corner of its last texel.
  const float directions[6][3] = {{1, 0, 0},  {-1, 0, 0}, {0, 1, 0},
                                  {0, -1, 0}, {0, 0, 1},  {0, 0, -1}};
  for (int face = 0; face < 6; ++face) {
    const auto& d = directions[face];
    EXPECT_EQ(cube.read(d[0], d[1], d[2], 1), static_cast<float>(4 * (6 + face) + 3)) << face;
  }
  // On +x, s is -z and t is -y.
  EXPECT_EQ(cube.read(1, 0.5F, 0.5F), 0);
  EXPECT_EQ(cube.read(1, 0.5F, -0.5F), 1);
  const Floats elements(TextureShape::Elements, {5, 1, 1});
  EXPECT_EQ(elements.read(0, 0, 0, 4), 4);
  EXPECT_EQ(elements.read(0, 0, 0, 5), 0);
  EXPECT_EQ(elements.read(0, 0, 0, -1), 0);
}

TEST(Texture, channels_are_converted) {
  Texture texture;
  std::uint32_t word = 0x80FF7F00;
  texture.texels.data = reinterpret_cast<std::byte*>(&word);
  texture.texels.channels = 4;
  texture.texels.channel_bytes = 1;
  texture.texels.kind = ChannelKind::Unsigned;
  const auto read = [&] {
    return mix(texture, taps_of(texture, {1, TextureShape::Plane, ChannelValue::Float, 4, 0, {}}));
  };
  const auto floats = [&] {
    std::vector<float> values;
    for (const auto each : read()) values.push_back(std::bit_cast<float>(each));
    return values;
  };
  EXPECT_EQ(read(), (std::array<std::uint32_t, 4>{0, 0x7F, 0xFF, 0x80}));
  texture.normalizes_values = true;
  EXPECT_EQ(floats(), (std::vector<float>{0, 127 / 255.0F, 1, 128 / 255.0F}));
  texture.texels.kind = ChannelKind::Signed;
  EXPECT_EQ(floats(), (std::vector<float>{0, 1, -1 / 127.0F, -1}));
  texture.normalizes_values = false;
  EXPECT_EQ(read(), (std::array<std::uint32_t, 4>{0, 0x7F, ~0U, 0xFFFFFF80}));
  texture.texels.kind = ChannelKind::Float;
  texture.texels.channels = 2;
  texture.texels.channel_bytes = 2;
  word = 0x3C00C000;
  EXPECT_EQ(floats(), (std::vector<float>{-2, 1, 0, 0}));
}

TEST(Texture, a_wrong_read_is_described) {
  const Floats plane(TextureShape::Plane, {4, 4, 1});
  const auto wrong = [&](const TextureRead& read) { return mistake_in(plane.texture, read); };
  EXPECT_EQ(wrong({1, TextureShape::Volume, ChannelValue::Float, 1, 0, {}}),
            "reads the array as a texture that is 3-D; it is 2-D");
  EXPECT_EQ(wrong({1, TextureShape::Plane, ChannelValue::Integer, 1, 0, {}}),
            "reads the array as integers, and its texels are read as floats");
  EXPECT_EQ(wrong({1, TextureShape::Plane, ChannelValue::Float, 4, 0, {}}),
            "reads 4 channels of the array, which has 1");
}

TEST(Surface, boundaries_and_mistakes) {
  const Floats plane(TextureShape::Plane, {4, 4, 1});
  const auto& texels = plane.texture.texels;
  SurfaceAccess access = {1, TextureShape::Plane, SurfaceBoundary::Trap, 4, 8, 3, 0};
  EXPECT_EQ(mistake_in(texels, access), "");
  EXPECT_EQ(bytes_of(texels, access), texels.data + 56);
  access.x = 9;
  EXPECT_NE(mistake_in(texels, access).find("x counts bytes"), std::string::npos);
  access.x = 16;
  EXPECT_EQ(mistake_in(texels, access),
            "uses byte 16 of row 3 in slice 0 of the array, which has 4 x 4 x 1 texels");
  access.boundary = SurfaceBoundary::Zero;
  EXPECT_EQ(mistake_in(texels, access), "");
  EXPECT_EQ(bytes_of(texels, access), nullptr);
  access.boundary = SurfaceBoundary::Clamp;
  EXPECT_EQ(bytes_of(texels, access), texels.data + 60);
  access.x = access.y = -4;
  EXPECT_EQ(bytes_of(texels, access), texels.data);
  access.bytes = 8;
  EXPECT_NE(mistake_in(texels, access).find("texels of 4"), std::string::npos);
}

}  // namespace
}  // namespace triptych::cuda::plain
