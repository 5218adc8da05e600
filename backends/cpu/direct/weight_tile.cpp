// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/direct/weight_tile.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/direct/weight_tile.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;

// As many sums as leave registers for a column each and a row.
constexpr int kRows = HWY_TARGET == HWY_AVX3 ? 8 : 4;

/// sums += row (x0, x1, ...): one row of a tile.
template <std::size_t kColumns, std::size_t... J>
HWY_INLINE void add_row(V row, const V* columns, V* sums, std::index_sequence<J...>) {
#if HWY_TARGET == HWY_AVX3
  __asm__("" : "+v"(row.raw));  // or g++ reads it from memory for each product
#endif
  ((sums[J] = hn::MulAdd(row, columns[J], sums[J])), ...);
}

/// R counts the tile's rows, T its sums.
template <std::size_t kColumns, std::size_t... R, std::size_t... T>
HWY_INLINE void multiply(const WeightTile& tile, std::index_sequence<R...>,
                         std::index_sequence<T...>) {
  constexpr auto each = std::make_index_sequence<kColumns>();
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto whole = tile.width / lanes * lanes;
  const LaneRange<Floats> rest(d, tile.width - whole);
  const float* rows[] = {tile.dy + static_cast<std::int64_t>(R) * tile.dy_row...};
  const auto at = [&](std::size_t t) {
    return tile.sums + static_cast<std::int64_t>(t / kColumns) * tile.sum_row +
           static_cast<std::int64_t>(t % kColumns) * lanes;
  };
  V sums[] = {hn::LoadU(d, at(T))...};
  V columns[kColumns];
  for (std::int64_t image = 0; image < tile.images; ++image) {
    auto dy = image * tile.dy_image, x = image * tile.x_image;
    for (std::int64_t line = 0; line < tile.lines; ++line, dy += tile.dy_line, x += tile.x_line) {
      for (std::int64_t i = 0; i < whole; i += lanes) {
        for (std::size_t j = 0; j < kColumns; ++j) columns[j] = hn::LoadU(d, tile.x[j] + x + i);
        (add_row<kColumns>(hn::LoadU(d, rows[R] + dy + i), columns, sums + R * kColumns, each),
         ...);
      }
      if (whole == tile.width) continue;
      for (std::size_t j = 0; j < kColumns; ++j) {
        columns[j] = rest.load(d, tile.x[j] + x + whole);
      }
      (add_row<kColumns>(rest.load(d, rows[R] + dy + whole), columns, sums + R * kColumns, each),
       ...);
    }
  }
  (hn::StoreU(sums[T], d, at(T)), ...);
}

template <std::size_t kTileRows, std::size_t kColumns>
void multiply_tile(const WeightTile& tile) {
  multiply<kColumns>(tile, std::make_index_sequence<kTileRows>(),
                     std::make_index_sequence<kTileRows * kColumns>());
}

template <std::size_t kTileRows>
void add_tiles(WeightTiles& all) {
  static_assert(kWeightTileColumns == 3);
  all.run[kTileRows] = {nullptr, multiply_tile<kTileRows, 1>, multiply_tile<kTileRows, 2>,
                        multiply_tile<kTileRows, 3>};
}

template <std::size_t... kRowsMinusOne>
void add_all_tiles(WeightTiles& all, std::index_sequence<kRowsMinusOne...>) {
  (add_tiles<kRowsMinusOne + 1>(all), ...);
}

/// Neighbouring lanes of two vectors added: the lower half of the result is of a.
HWY_INLINE V pair_sums(V a, V b) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Add(a, b);
#else
  const Floats d;
  return hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
#endif
}

void fold_lanes(const float* from, std::int64_t count, float* to) {
  const Floats d;
  const auto lanes = hn::Lanes(d);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(lanes)) {
    V vectors[hn::MaxLanes(d)];
    const float* first = from + i * static_cast<std::int64_t>(lanes);
    for (std::size_t v = 0; v < lanes; ++v) vectors[v] = hn::LoadU(d, first + v * lanes);
    for (std::size_t left = lanes / 2; left > 0; left /= 2) {
      for (std::size_t v = 0; v < left; ++v) {
        vectors[v] = pair_sums(vectors[2 * v], vectors[2 * v + 1]);
      }
    }
    hn::StoreU(vectors[0], d, to + i);
  }
}

}  // namespace

WeightTiles make_weight_tiles() {
  WeightTiles all;
  all.lanes = static_cast<int>(hn::Lanes(Floats()));
  all.max_rows = kRows;
  add_all_tiles(all, std::make_index_sequence<kRows>());
  all.fold_lanes = fold_lanes;
  return all;
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(make_weight_tiles);

const WeightTiles& weight_tiles() {
  static const WeightTiles chosen = HWY_DYNAMIC_DISPATCH(make_weight_tiles)();
  return chosen;
}

}  // namespace triptych::cpu
#endif
