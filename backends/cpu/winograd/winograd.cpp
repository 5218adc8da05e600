// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/winograd/winograd.h"

#include <algorithm>

#include "backends/cpu/gemm/microkernel.h"
#include "core/base/checked_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/winograd/winograd.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/winograd/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

template <class D>
HWY_INLINE void load_interleaved(D d, const float* from, hn::Vec<D> (&to)[2]) {
  hn::LoadInterleaved2(d, from, to[0], to[1]);
}
template <class D>
HWY_INLINE void load_interleaved(D d, const float* from, hn::Vec<D> (&to)[4]) {
  hn::LoadInterleaved4(d, from, to[0], to[1], to[2], to[3]);
}
template <class D>
HWY_INLINE void store_interleaved(D d, const hn::Vec<D> (&from)[2], float* to) {
  hn::StoreInterleaved2(from[0], from[1], d, to);
}
template <class D>
HWY_INLINE void store_interleaved(D d, const hn::Vec<D> (&from)[4], float* to) {
  hn::StoreInterleaved4(from[0], from[1], from[2], from[3], d, to);
}

/// Floats of one row of inputs with its padding.
std::int64_t line_floats(const WinogradGrid& grid) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  return round_up(grid.columns * grid.tile + grid.patch(), lanes) + lanes;
}

/// Floats of every tile'th input of a line, from one on.
std::int64_t phase_floats(const WinogradGrid& grid) {
  return grid.columns + static_cast<std::int64_t>(hn::Lanes(Floats()));
}

/// B^T down the columns: rows of x to `lines`.
template <int kTile>
void transform_down(const WinogradGrid& grid, const WinogradPatches& p) {
  constexpr int kPatch = kTile + 2;
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto pitch = line_floats(grid);
  const auto left = -p.first[1];
  const float* rows[kPatch];
  for (int i = 0; i < kPatch; ++i) {
    const auto y = p.first[0] + i;
    rows[i] = y >= 0 && y < p.in[0] ? p.plane + y * p.in[1] : nullptr;
    hn::StoreU(hn::Zero(d), d, p.scratch + i * pitch);
  }
  std::int64_t x = 0;
  const auto used = std::min(p.in[1], pitch - lanes - left);
  for (; x < used; x += lanes) {
    const auto count = static_cast<std::size_t>(used - x);
    hn::Vec<Floats> from[kPatch], to[kPatch];
    for (int i = 0; i < kPatch; ++i) {
      from[i] = rows[i] == nullptr ? hn::Zero(d)
                : used - x < lanes ? hn::MaskedLoad(hn::FirstN(d, count), d, rows[i] + x)
                                   : hn::LoadU(d, rows[i] + x);
    }
    WinogradMatrices<kTile, Floats>::patch(from, to);
    for (int i = 0; i < kPatch; ++i) hn::StoreU(to[i], d, p.scratch + i * pitch + left + x);
  }
  for (x += left; x < pitch; x += lanes) {
    for (int i = 0; i < kPatch; ++i) {
      hn::StoreU(hn::Zero(d), d, p.scratch + i * pitch + std::min(x, pitch - lanes));
    }
  }
}

/// B^T along the rows: `lines` to v.
template <int kTile, class D>
void transform_across(D d, const WinogradGrid& grid, const WinogradPatches& p) {
  constexpr int kPatch = kTile + 2;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto pitch = line_floats(grid);
  const auto phase = phase_floats(grid);
  const auto panel = std::int64_t{2} * static_cast<std::int64_t>(hn::Lanes(Floats()));
  float* phases = p.scratch + kPatch * pitch;
  for (int i = 0; i < kPatch; ++i) {
    const float* line = p.scratch + i * pitch;
    // The last of a row's patches reaches into what would be the next one.
    for (std::int64_t q = 0; q < grid.columns; q += lanes) {
      hn::Vec<D> parts[kTile];
      load_interleaved(d, line + q * kTile, parts);
      for (int j = 0; j < kTile; ++j) hn::StoreU(parts[j], d, phases + j * phase + q);
    }
    for (int j = 0; j < 2; ++j) {
      phases[j * phase + grid.columns] = line[grid.columns * kTile + j];
    }
    for (std::int64_t q = 0; q < grid.columns; q += lanes) {
      hn::Vec<D> from[kPatch], to[kPatch];
      for (int j = 0; j < kPatch; ++j) {
        from[j] = hn::LoadU(d, phases + j % kTile * phase + q + j / kTile);
      }
      WinogradMatrices<kTile, D>::patch(from, to);
      const auto column = p.column + q;
      float* v =
          p.v + i * kPatch * p.point_stride + column / panel * p.panel_stride + column % panel;
      for (int j = 0; j < kPatch; ++j) hn::StoreU(to[j], d, v + j * p.point_stride);
    }
  }
}

template <int kTile, class D>
void transform_back(D d, const WinogradGrid& grid, const WinogradOutputs& o) {
  constexpr int kPatch = kTile + 2;
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V bias = hn::Set(d, o.bias);
  const auto rows = std::min<std::int64_t>(kTile, o.out[0] - o.first_row);
  HWY_ALIGN float rest[kTile * HWY_MAX_BYTES / sizeof(float)];
  for (std::int64_t q = 0; q < grid.columns; q += lanes) {
    V down[kTile][kPatch];
    for (int j = 0; j < kPatch; ++j) {
      V from[kPatch], to[kTile];
      for (int i = 0; i < kPatch; ++i) {
        from[i] = hn::LoadU(d, o.m + (i * kPatch + j) * o.point_stride + q);
      }
      WinogradMatrices<kTile, D>::output(from, to);
      for (int i = 0; i < kTile; ++i) down[i][j] = to[i];
    }
    const auto left = std::min(lanes * kTile, o.out[1] - q * kTile);
    for (int i = 0; i < rows; ++i) {
      V to[kTile];
      WinogradMatrices<kTile, D>::output(down[i], to);
      for (int j = 0; j < kTile; ++j) {
        to[j] = hn::Add(to[j], bias);
        if (o.relu) to[j] = hn::IfThenElseZero(hn::Not(hn::Le(to[j], hn::Zero(d))), to[j]);
      }
      float* y = o.plane + (o.first_row + i) * o.out[1] + q * kTile;
      if (left == lanes * kTile) {
        store_interleaved(d, to, y);
      } else if (left > 0) {
        store_interleaved(d, to, rest);
        std::copy_n(rest, left, y);
      }
    }
  }
}

template <int kTile>
void filters_of(const float* w, std::int64_t count, bool flipped, float* u, std::int64_t stride) {
  constexpr int kPatch = kTile + 2;
  using Matrices = WinogradMatrices<kTile, Floats>;
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t f = 0; f < count; f += lanes) {
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(count - f));
    hn::Vec<Floats> down[kPatch][3];
    for (int x = 0; x < 3; ++x) {
      hn::Vec<Floats> from[3], to[kPatch];
      for (int y = 0; y < 3; ++y) {
        const auto tap = flipped ? 8 - y * 3 - x : y * 3 + x;
        from[y] = hn::MaskedLoad(mask, d, w + tap * count + f);
      }
      Matrices::filter(from, to);
      for (int i = 0; i < kPatch; ++i) down[i][x] = to[i];
    }
    for (int i = 0; i < kPatch; ++i) {
      hn::Vec<Floats> to[kPatch];
      Matrices::filter(down[i], to);
      for (int j = 0; j < kPatch; ++j) {
        hn::BlendedStore(to[j], mask, d, u + (i * kPatch + j) * stride + f);
      }
    }
  }
}

/// B^T x B of one patch and A dy A^T of one tile, by one axis after the other.
template <int kTile>
struct PatchTransform {
  static constexpr int kIn = kTile + 2;
  template <class V>
  static HWY_INLINE void along(const V (&from)[kTile + 2], V (&to)[kTile + 2]) {
    WinogradMatrices<kTile, Floats>::patch(from, to);
  }
};
template <int kTile>
struct GradientTransform {
  static constexpr int kIn = kTile;
  template <class V>
  static HWY_INLINE void along(const V (&from)[kTile], V (&to)[kTile + 2]) {
    WinogradMatrices<kTile, Floats>::output_gradient(from, to);
  }
};

template <int kTile, class Transform>
void transform_channels(const WinogradChannels& c) {
  constexpr int kPatch = kTile + 2, kIn = Transform::kIn;
  const Floats d;
  using V = hn::Vec<Floats>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t tile = 0; tile < c.tiles; ++tile) {
    V down[kPatch][kIn];
    for (int x = 0; x < kIn; ++x) {
      V from[kIn], to[kPatch];
      for (int y = 0; y < kIn; ++y) {
        from[y] = hn::LoadU(d, c.lines + (y * c.pitch + tile * kTile + x) * lanes);
      }
      Transform::along(from, to);
      for (int i = 0; i < kPatch; ++i) down[i][x] = to[i];
    }
    for (int i = 0; i < kPatch; ++i) {
      V to[kPatch];
      Transform::along(down[i], to);
      float* v = c.to + i * kPatch * c.point_stride + tile * c.tile_stride;
      for (int j = 0; j < kPatch; ++j) hn::StoreU(to[j], d, v + j * c.point_stride);
    }
  }
}

template <int kTile>
void transform_sums_of(const float* sums, std::int64_t point_stride, float* taps) {
  constexpr int kPatch = kTile + 2;
  const Floats d;
  using V = hn::Vec<Floats>;
  using Matrices = WinogradMatrices<kTile, Floats>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V down[3][kPatch];
  for (int x = 0; x < kPatch; ++x) {
    V from[kPatch], to[3];
    for (int y = 0; y < kPatch; ++y) from[y] = hn::LoadU(d, sums + (y * kPatch + x) * point_stride);
    Matrices::filter_gradient(from, to);
    for (int i = 0; i < 3; ++i) down[i][x] = to[i];
  }
  for (int i = 0; i < 3; ++i) {
    V to[3];
    Matrices::filter_gradient(down[i], to);
    for (int j = 0; j < 3; ++j) hn::StoreU(to[j], d, taps + (i * 3 + j) * lanes);
  }
}

/// Calls body with a tag of `lanes` lanes.
template <class Body>
HWY_INLINE void with_lanes(int lanes, const Body& body) {
  if (lanes == static_cast<int>(hn::Lanes(Floats()))) return body(Floats());
  if (lanes == 8) return body(hn::CappedTag<float, 8>());
  body(hn::CappedTag<float, 4>());
}

}  // namespace

void patches(const WinogradGrid& grid, const WinogradPatches& p) {
  if (grid.tile == 4) {
    transform_down<4>(grid, p);
    with_lanes(grid.lanes, [&](auto d) { transform_across<4>(d, grid, p); });
  } else {
    transform_down<2>(grid, p);
    with_lanes(grid.lanes, [&](auto d) { transform_across<2>(d, grid, p); });
  }
}

void outputs(const WinogradGrid& grid, const WinogradOutputs& o) {
  if (grid.tile == 4) {
    with_lanes(grid.lanes, [&](auto d) { transform_back<4>(d, grid, o); });
  } else {
    with_lanes(grid.lanes, [&](auto d) { transform_back<2>(d, grid, o); });
  }
}

void filters(int tile, const float* w, std::int64_t count, bool flipped, float* u,
             std::int64_t stride) {
  if (tile == 4) return filters_of<4>(w, count, flipped, u, stride);
  filters_of<2>(w, count, flipped, u, stride);
}

void patch_channels(int tile, const WinogradChannels& c) {
  tile == 4 ? transform_channels<4, PatchTransform<4>>(c)
            : transform_channels<2, PatchTransform<2>>(c);
}

void gradient_channels(int tile, const WinogradChannels& c) {
  tile == 4 ? transform_channels<4, GradientTransform<4>>(c)
            : transform_channels<2, GradientTransform<2>>(c);
}

void channel_sums(int tile, const float* sums, std::int64_t point_stride, float* taps) {
  tile == 4 ? transform_sums_of<4>(sums, point_stride, taps)
            : transform_sums_of<2>(sums, point_stride, taps);
}

std::int64_t scratch(const WinogradGrid& grid) {
  return grid.patch() * line_floats(grid) + grid.tile * phase_floats(grid);
}

int native_lanes() { return static_cast<int>(hn::Lanes(Floats())); }

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {
namespace {

HWY_EXPORT(patches);
HWY_EXPORT(outputs);
HWY_EXPORT(filters);
HWY_EXPORT(patch_channels);
HWY_EXPORT(gradient_channels);
HWY_EXPORT(channel_sums);
HWY_EXPORT(scratch);
HWY_EXPORT(native_lanes);

}  // namespace

WinogradGrid::WinogradGrid(int tile_size, std::int64_t batch, const std::int64_t (&out)[2])
    : tile(tile_size), image_rows(ceil_div(out[0], std::int64_t{tile_size})) {
  const auto tiles = ceil_div(out[1], std::int64_t{tile});
  lanes = HWY_DYNAMIC_DISPATCH(native_lanes)();
  while (lanes > 4 && round_up(tiles, lanes) > round_up(tiles, lanes / 2)) lanes /= 2;
  columns = round_up(tiles, lanes);
  rows = batch * image_rows;
}

std::int64_t patch_scratch(const WinogradGrid& grid) { return HWY_DYNAMIC_DISPATCH(scratch)(grid); }

void transform_patches(const WinogradGrid& grid, const WinogradPatches& p) {
  HWY_DYNAMIC_DISPATCH(patches)(grid, p);
}

void transform_outputs(const WinogradGrid& grid, const WinogradOutputs& o) {
  HWY_DYNAMIC_DISPATCH(outputs)(grid, o);
}

void transform_filters(int tile, const float* w, std::int64_t count, bool flipped, float* u,
                       std::int64_t point_stride) {
  HWY_DYNAMIC_DISPATCH(filters)(tile, w, count, flipped, u, point_stride);
}

std::int64_t winograd_lanes() { return HWY_DYNAMIC_DISPATCH(native_lanes)(); }

void transform_patch_channels(int tile, const WinogradChannels& channels) {
  HWY_DYNAMIC_DISPATCH(patch_channels)(tile, channels);
}

void transform_gradient_channels(int tile, const WinogradChannels& channels) {
  HWY_DYNAMIC_DISPATCH(gradient_channels)(tile, channels);
}

void transform_sums(int tile, const float* sums, std::int64_t point_stride, float* taps) {
  HWY_DYNAMIC_DISPATCH(channel_sums)(tile, sums, point_stride, taps);
}

}  // namespace triptych::cpu
#endif
