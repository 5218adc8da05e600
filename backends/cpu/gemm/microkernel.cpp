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
using Words = hn::ScalableTag<PairWord>;

// Two vectors a row, and as many rows as leave registers for one row of b and one element of a.
constexpr int kTileRows = HWY_TARGET == HWY_AVX3 ? 14 : HWY_TARGET == HWY_AVX2 ? 6 : 4;

/// sum + a b, in each lane.
HWY_INLINE hn::Vec<Floats> multiply_add(hn::Vec<Floats> a, hn::Vec<Floats> b, hn::Vec<Floats> sum) {
  return hn::MulAdd(a, b, sum);
}

/// The same with both products of a pair. Every sum wraps, so their order does not matter.
HWY_INLINE hn::Vec<Words> multiply_add(hn::Vec<Words> a, hn::Vec<Words> b, hn::Vec<Words> sum) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::Repartition<std::int16_t, Words> halves;
  auto unused = hn::Zero(Words());
  return hn::ReorderWidenMulAccumulate(Words(), hn::BitCast(halves, a), hn::BitCast(halves, b), sum,
                                       unused);
#else
  const auto first = [](auto word) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(word)); };
  const auto second = [](auto word) { return hn::ShiftRight<16>(word); };
  return hn::Add(sum, hn::Add(hn::Mul(first(a), first(b)), hn::Mul(second(a), second(b))));
#endif
}

/// What a chain leaves behind: one NaN for all, whichever the processor made of it, as on the
/// array.
HWY_INLINE hn::Vec<Floats> canonical(hn::Vec<Floats> sum) {
  return hn::IfThenElse(hn::IsNaN(sum), hn::BitCast(Floats(), hn::Set(Words(), 0x7FC00000)), sum);
}
HWY_INLINE hn::Vec<Words> canonical(hn::Vec<Words> sum) { return sum; }

template <class T, std::size_t... R>
HWY_INLINE void multiply(const BasicMicroTile<T>& tile, std::index_sequence<R...>) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<hn::ScalableTag<T>>;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  V left[] = {((void)R, hn::Zero(d))...};
  V right[] = {((void)R, hn::Zero(d))...};
  T* c = tile.c;
  const auto c_stride = tile.c_stride;
  if (tile.accumulate && !tile.separate) {
    ((left[R] = hn::LoadU(d, c + R * c_stride)), ...);
    ((right[R] = hn::LoadU(d, c + R * c_stride + lanes)), ...);
  }
  const T* a = tile.a;
  const auto a_step = tile.a_step == 0 ? static_cast<std::int64_t>(sizeof...(R)) : tile.a_step;
  const auto b_inner = tile.b_inner;
  for (std::int64_t outer = 0; outer < tile.k_outer; ++outer) {
    const T* b = tile.b + outer * tile.b_outer;
    for (std::int64_t inner = 0; inner < tile.k_inner; ++inner) {
      const V b_left = hn::LoadU(d, b);
      const V b_right = hn::LoadU(d, b + lanes);
      ((left[R] = multiply_add(hn::Set(d, a[R]), b_left, left[R]),
        right[R] = multiply_add(hn::Set(d, a[R]), b_right, right[R])),
       ...);
      a += a_step;
      b += b_inner;
    }
  }
  if (tile.accumulate && tile.separate) {
    ((left[R] = hn::Add(hn::LoadU(d, c + R * c_stride), left[R])), ...);
    ((right[R] = hn::Add(hn::LoadU(d, c + R * c_stride + lanes), right[R])), ...);
  }
  (hn::StoreU(canonical(left[R]), d, c + R * c_stride), ...);
  (hn::StoreU(canonical(right[R]), d, c + R * c_stride + lanes), ...);
}

template <class T, std::size_t kRows>
void multiply_rows(const BasicMicroTile<T>& tile) {
  multiply(tile, std::make_index_sequence<kRows>());
}

template <std::size_t... kRowsMinusOne>
Microkernels all_heights(std::index_sequence<kRowsMinusOne...>) {
  Microkernels result;
  result.max_rows = kTileRows;
  result.columns = static_cast<int>(2 * hn::Lanes(Floats()));
  result.fused = HWY_NATIVE_FMA != 0;
  ((result.run[kRowsMinusOne + 1] = multiply_rows<float, kRowsMinusOne + 1>), ...);
  ((result.run_pairs[kRowsMinusOne + 1] = multiply_rows<PairWord, kRowsMinusOne + 1>), ...);
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
