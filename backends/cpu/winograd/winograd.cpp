// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/winograd/winograd.h"

#include <algorithm>

#include <hwy/cache_control.h>

#include "backends/cpu/gemm/microkernel.h"
#include "core/base/checked_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/winograd/winograd.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/lanes-inl.h"
#include "backends/cpu/winograd/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

template <class D>
HWY_INLINE void store_interleaved(D d, const hn::Vec<D> (&from)[2], float* to) {
  hn::StoreInterleaved2(from[0], from[1], d, to);
}
template <class D>
HWY_INLINE void store_interleaved(D d, const hn::Vec<D> (&from)[4], float* to) {
  hn::StoreInterleaved4(from[0], from[1], from[2], from[3], d, to);
}

/// A row of a plane, 0 beyond its ends.
struct Row {
  const float* begin = nullptr;  ///< nullptr: all of it is 0
  std::int64_t size = 0;

  float at(std::int64_t x) const {
    return begin != nullptr && x >= 0 && x < size ? begin[x] : 0.0F;
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t x) const {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (begin == nullptr || x >= size) return hn::Zero(d);
    if (x >= 0 && x + lanes <= size) return hn::LoadU(d, begin + x);
    const LaneRange<D> inside(d, std::max<std::int64_t>(0, -x), std::min(lanes, size - x));
    return inside.load(d, begin + x);
  }
};

// load_phases: phases[j] = elements x + j, x + j + stride, ... of the row, the stride being 2 or 4.
// next_lanes: the lanes of a vector moved down by one, `last` behind them.
#if HWY_TARGET == HWY_SCALAR
template <class D, std::size_t kStride>
HWY_INLINE void load_phases(D d, const Row& row, std::int64_t x, hn::Vec<D> (&phases)[kStride]) {
  for (std::size_t j = 0; j < kStride; ++j) {
    phases[j] = hn::Set(d, row.at(x + static_cast<std::int64_t>(j)));
  }
}

template <class D>
HWY_INLINE hn::Vec<D> next_lanes(D d, hn::Vec<D>, float last) {
  return hn::Set(d, last);
}
#else
template <class D>
HWY_INLINE void load_phases(D d, const Row& row, std::int64_t x, hn::Vec<D> (&phases)[2]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto low = row.load(d, x), high = row.load(d, x + lanes);
  phases[0] = hn::ConcatEven(d, high, low);
  phases[1] = hn::ConcatOdd(d, high, low);
}
template <class D>
HWY_INLINE void load_phases(D d, const Row& row, std::int64_t x, hn::Vec<D> (&phases)[4]) {
  hn::Vec<D> low[2], high[2];
  load_phases(d, row, x, low);
  load_phases(d, row, x + 2 * static_cast<std::int64_t>(hn::Lanes(d)), high);
  for (int j = 0; j < 2; ++j) {
    phases[j] = hn::ConcatEven(d, high[j], low[j]);
    phases[j + 2] = hn::ConcatOdd(d, high[j], low[j]);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> next_lanes(D d, hn::Vec<D> v, float last) {
  const hn::RebindToSigned<D> s;
  const auto lanes = static_cast<std::int32_t>(hn::Lanes(d));
  const auto from = hn::Min(hn::Iota(s, 1), hn::Set(s, lanes - 1));
  const auto moved = hn::TableLookupLanes(v, hn::IndicesFromVec(d, from));
  return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(lanes - 1)), moved,
                        hn::Set(d, last));
}
#endif

/// Prefetches the data that the next plane's patches read and this row's have not read before, from
/// column x on.
template <int kTile>
HWY_INLINE void prefetch_rows(const WinogradPatches& p, std::int64_t x, std::int64_t columns) {
  constexpr std::int64_t line = 16;
  const auto end = std::min(p.in[1], x + columns);
  for (auto y = std::max<std::int64_t>(0, p.first[0] + 2);
       y < std::min(p.in[0], p.first[0] + kTile + 2); ++y) {
    const float* row = p.next_plane + y * p.in[1];
    for (auto at = std::max<std::int64_t>(0, x); at < end; at += line) hwy::Prefetch(row + at);
  }
}

template <int kTile, class D>
void transform(D d, const WinogradGrid& grid, const WinogradPatches& p) {
  constexpr int patch = kTile + 2;
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Row rows[patch];
  for (int i = 0; i < patch; ++i) {
    const auto y = p.first[0] + i;
    rows[i] = {y >= 0 && y < p.in[0] ? p.plane + y * p.in[1] : nullptr, p.in[1]};
  }
  for (std::int64_t q = 0; q < grid.columns; q += lanes) {
    const auto x = p.first[1] + q * kTile;
    if (p.next_plane != nullptr) prefetch_rows<kTile>(p, x, lanes * kTile);
    V across[patch][patch];  // [column][row]
    for (int i = 0; i < patch; ++i) {
      V phases[kTile], from[patch], to[patch];
      load_phases(d, rows[i], x, phases);
      for (int j = 0; j < kTile; ++j) from[j] = phases[j];
      const auto end = x + lanes * kTile;
      from[kTile] = next_lanes(d, phases[0], rows[i].at(end));
      from[kTile + 1] = next_lanes(d, phases[1], rows[i].at(end + 1));
      WinogradMatrices<kTile, D>::patch(from, to);
      for (int j = 0; j < patch; ++j) across[j][i] = to[j];
    }
    const auto column = p.column + q;
    float* v = p.v + column / p.panel * p.panel_stride + column % p.panel;
    for (int j = 0; j < patch; ++j) {
      V to[patch];
      WinogradMatrices<kTile, D>::patch(across[j], to);
      for (int i = 0; i < patch; ++i) {
        hn::StoreU(to[i], d, v + (i * patch + j) * p.point_stride);
      }
    }
  }
}

template <int kTile, class D>
void transform_back(D d, const WinogradGrid& grid, const WinogradOutputs& o) {
  constexpr int patch = kTile + 2;
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V bias = hn::Set(d, o.bias);
  const auto rows = std::min<std::int64_t>(kTile, o.out[0] - o.first_row);
  HWY_ALIGN float rest[kTile * HWY_MAX_BYTES / sizeof(float)];
  // From the last columns to the first: vectors that reach beyond a row of y end in rows of these
  // tiles that are stored later.
  for (auto q = (grid.columns - 1) / lanes * lanes; q >= 0; q -= lanes) {
    V down[kTile][patch];
    for (int j = 0; j < patch; ++j) {
      V from[patch], to[kTile];
      for (int i = 0; i < patch; ++i) {
        from[i] = hn::LoadU(d, o.m + (i * patch + j) * o.point_stride + q);
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
      const auto behind = o.large ? 0 : (rows - 1 - i) * o.out[1];
      const auto vector_bytes = static_cast<std::uintptr_t>(lanes) * sizeof(float);
      if (o.large && left == lanes * kTile &&
          reinterpret_cast<std::uintptr_t>(y) % vector_bytes == 0) {
        store_interleaved(d, to, rest);
        for (int j = 0; j < kTile; ++j)
          hn::Stream(hn::LoadU(d, rest + j * lanes), d, y + j * lanes);
      } else if (left > 0 && lanes * kTile - left <= behind) {
        store_interleaved(d, to, y);
      } else if (left > 0) {
        store_interleaved(d, to, rest);
        std::copy_n(rest, left, y);
      }
    }
  }
  if (o.large) hwy::FlushStream();
}

template <int kTile>
void filters_of(const WinogradFilters& f) {
  constexpr int patch = kTile + 2;
  using Matrices = WinogradMatrices<kTile, Floats>;
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t at = 0; at < f.count; at += lanes) {
    const LaneRange<Floats> valid(d, f.count - at);
    hn::Vec<Floats> down[patch][3];
    for (int x = 0; x < 3; ++x) {
      hn::Vec<Floats> from[3], to[patch];
      for (int y = 0; y < 3; ++y) {
        const auto tap = f.flipped ? 8 - y * 3 - x : y * 3 + x;
        from[y] = valid.load(d, f.taps + tap * f.count + at);
      }
      Matrices::filter(from, to);
      for (int i = 0; i < patch; ++i) down[i][x] = to[i];
    }
    for (int i = 0; i < patch; ++i) {
      hn::Vec<Floats> to[patch];
      Matrices::filter(down[i], to);
      for (int j = 0; j < patch; ++j) {
        valid.store(to[j], d, f.u + (i * patch + j) * f.point_stride + at);
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
  constexpr int patch = kTile + 2, in = Transform::kIn;
  const Floats d;
  using V = hn::Vec<Floats>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t tile = 0; tile < c.tiles; ++tile) {
    V down[patch][in];
    for (int x = 0; x < in; ++x) {
      V from[in], to[patch];
      for (int y = 0; y < in; ++y) {
        from[y] = hn::LoadU(d, c.lines + (y * c.pitch + tile * kTile + x) * lanes);
      }
      Transform::along(from, to);
      for (int i = 0; i < patch; ++i) down[i][x] = to[i];
    }
    for (int i = 0; i < patch; ++i) {
      V to[patch];
      Transform::along(down[i], to);
      float* v = c.to + i * patch * c.point_stride + tile * c.tile_stride;
      for (int j = 0; j < patch; ++j) hn::StoreU(to[j], d, v + j * c.point_stride);
    }
  }
}

template <int kTile>
void transform_sums_of(const float* sums, std::int64_t point_stride, float* taps) {
  constexpr int patch = kTile + 2;
  const Floats d;
  using V = hn::Vec<Floats>;
  using Matrices = WinogradMatrices<kTile, Floats>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V down[3][patch];
  for (int x = 0; x < patch; ++x) {
    V from[patch], to[3];
    for (int y = 0; y < patch; ++y) from[y] = hn::LoadU(d, sums + (y * patch + x) * point_stride);
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
    with_lanes(grid.lanes, [&](auto d) { transform<4>(d, grid, p); });
  } else {
    with_lanes(grid.lanes, [&](auto d) { transform<2>(d, grid, p); });
  }
}

void outputs(const WinogradGrid& grid, const WinogradOutputs& o) {
  if (grid.tile == 4) {
    with_lanes(grid.lanes, [&](auto d) { transform_back<4>(d, grid, o); });
  } else {
    with_lanes(grid.lanes, [&](auto d) { transform_back<2>(d, grid, o); });
  }
}

void filters(int tile, const WinogradFilters& f) {
  tile == 4 ? filters_of<4>(f) : filters_of<2>(f);
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

std::int64_t winograd_point_stride(std::int64_t floats) {
  constexpr std::int64_t line = 16;
  return checked_add(round_up(floats, 2 * line), 3 * line);
}

void transform_patches(const WinogradGrid& grid, const WinogradPatches& p) {
  HWY_DYNAMIC_DISPATCH(patches)(grid, p);
}

void transform_outputs(const WinogradGrid& grid, const WinogradOutputs& o) {
  HWY_DYNAMIC_DISPATCH(outputs)(grid, o);
}

void transform_filters(int tile, const WinogradFilters& f) {
  HWY_DYNAMIC_DISPATCH(filters)(tile, f);
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
