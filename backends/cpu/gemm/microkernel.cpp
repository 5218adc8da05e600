// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/microkernel.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/microkernel.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;

// Two vectors a row, and as many rows as leave registers for one row of b and one element of a.
constexpr int kTileRows = HWY_TARGET == HWY_AVX3 ? 14 : HWY_TARGET == HWY_AVX2 ? 6 : 4;

template <std::size_t... R>
HWY_INLINE void multiply(const MicroTile& tile, std::index_sequence<R...>) {
  const Floats d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  V left[] = {((void)R, hn::Zero(d))...};
  V right[] = {((void)R, hn::Zero(d))...};
  float* c = tile.c;
  const auto c_stride = tile.c_stride;
  if (tile.accumulate) {
    ((left[R] = hn::LoadU(d, c + R * c_stride)), ...);
    ((right[R] = hn::LoadU(d, c + R * c_stride + lanes)), ...);
  }
  const float* a = tile.a;
  const auto b_inner = tile.b_inner;
  for (std::int64_t outer = 0; outer < tile.k_outer; ++outer) {
    const float* b = tile.b + outer * tile.b_outer;
    for (std::int64_t inner = 0; inner < tile.k_inner; ++inner) {
      const V b_left = hn::LoadU(d, b);
      const V b_right = hn::LoadU(d, b + lanes);
      ((left[R] = hn::MulAdd(hn::Set(d, a[R]), b_left, left[R]),
        right[R] = hn::MulAdd(hn::Set(d, a[R]), b_right, right[R])),
       ...);
      a += sizeof...(R);
      b += b_inner;
    }
  }
  (hn::StoreU(left[R], d, c + R * c_stride), ...);
  (hn::StoreU(right[R], d, c + R * c_stride + lanes), ...);
}

template <std::size_t kRows>
void multiply_rows(const MicroTile& tile) {
  multiply(tile, std::make_index_sequence<kRows>());
}

template <std::size_t... kRowsMinusOne>
Microkernels all_heights(std::index_sequence<kRowsMinusOne...>) {
  Microkernels result;
  result.max_rows = kTileRows;
  result.columns = static_cast<int>(2 * hn::Lanes(Floats()));
  result.fused = HWY_NATIVE_FMA != 0;
  ((result.run[kRowsMinusOne + 1] = multiply_rows<kRowsMinusOne + 1>), ...);
  return result;
}

}  // namespace

Microkernels make_microkernels() { return all_heights(std::make_index_sequence<kTileRows>()); }

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(make_microkernels);

const Microkernels& microkernels() {
  static const Microkernels chosen = HWY_DYNAMIC_DISPATCH(make_microkernels)();
  return chosen;
}

}  // namespace triptych::cpu
#endif
