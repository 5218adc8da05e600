// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "backends/cpu/ladder/steps.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/ladder/vector_steps.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

// Two vectors a row, and rows enough that no multiply-add waits for the one before it in its chain.
constexpr std::int64_t kRows = HWY_TARGET == HWY_AVX3 ? 8 : 4;

/// One NaN for all, whichever the processor made of it.
HWY_INLINE hn::Vec<Floats> canonical(hn::Vec<Floats> sum) {
  const hn::RebindToUnsigned<Floats> bits;
  return hn::IfThenElse(hn::IsNaN(sum), hn::BitCast(Floats(), hn::Set(bits, 0x7FC00000)), sum);
}

/// Some columns of two vectors: all of them, or the first `valid`.
template <bool kFull>
class Columns {
 public:
  explicit Columns(std::int64_t valid)
      : left_(Floats(), std::min(valid, lanes())),
        right_(Floats(), std::max<std::int64_t>(0, valid - lanes())) {}

  static std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }
  HWY_INLINE hn::Vec<Floats> load_left(const float* from) const { return load(left_, from); }
  HWY_INLINE hn::Vec<Floats> load_right(const float* from) const {
    return load(right_, from + lanes());
  }
  HWY_INLINE void store(hn::Vec<Floats> left, hn::Vec<Floats> right, float* to) const {
    if constexpr (kFull) {
      hn::StoreU(left, Floats(), to);
      hn::StoreU(right, Floats(), to + lanes());
    } else {
      left_.store(left, Floats(), to);
      right_.store(right, Floats(), to + lanes());
    }
  }

 private:
  static HWY_INLINE hn::Vec<Floats> load(const LaneRange<Floats>& part, const float* from) {
    if constexpr (kFull) return hn::LoadU(Floats(), from);
    return part.load(Floats(), from);
  }

  LaneRange<Floats> left_, right_;
};

/// One tile of c: R... rows from `row` on, two vectors of columns from `column` on, and k from
/// `depth`.
template <bool kFull, std::size_t... R>
HWY_INLINE void multiply(const PlainProduct& p, std::int64_t row, std::int64_t column, Range depth,
                         std::index_sequence<R...>) {
  const Floats d;
  const Columns<kFull> columns(p.n - column);
  const float* a = p.a + row * p.k;
  const float* b = p.b + column;
  float* c = p.c + row * p.n + column;
  const auto a_stride = p.k, b_stride = p.n;
  hn::Vec<Floats> left[] = {((void)R, hn::Zero(d))...};
  hn::Vec<Floats> right[] = {((void)R, hn::Zero(d))...};
  if (depth.begin > 0) {
    ((left[R] = columns.load_left(c + R * b_stride)), ...);
    ((right[R] = columns.load_right(c + R * b_stride)), ...);
  }
  for (auto k = depth.begin; k < depth.end; ++k) {
    const auto b_left = columns.load_left(b + k * b_stride);
    const auto b_right = columns.load_right(b + k * b_stride);
    ((left[R] = hn::MulAdd(hn::Set(d, a[R * a_stride + k]), b_left, left[R]),
      right[R] = hn::MulAdd(hn::Set(d, a[R * a_stride + k]), b_right, right[R])),
     ...);
  }
  (columns.store(canonical(left[R]), canonical(right[R]), c + R * b_stride), ...);
}

template <bool kFull>
void multiply_column(const PlainProduct& p, Range rows, std::int64_t column, Range depth) {
  auto row = rows.begin;
  for (; row + kRows <= rows.end; row += kRows) {
    multiply<kFull>(p, row, column, depth, std::make_index_sequence<kRows>());
  }
  for (; row < rows.end; ++row) {
    multiply<kFull>(p, row, column, depth, std::make_index_sequence<1>());
  }
}

}  // namespace

VectorTile make_vector_tile() { return {kRows, 2 * Columns<true>::lanes()}; }

void multiply_rows(const PlainProduct& p, Range rows) {
  const auto width = 2 * Columns<true>::lanes();
  Range depth;
  do {
    depth = {depth.end, std::min(p.k, depth.end + kVectorDepth)};
    for (std::int64_t column = 0; column < p.n; column += width) {
      if (column + width <= p.n) {
        multiply_column<true>(p, rows, column, depth);
      } else {
        multiply_column<false>(p, rows, column, depth);
      }
    }
  } while (depth.end < p.k);
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(make_vector_tile);
HWY_EXPORT(multiply_rows);

VectorTile vector_tile() { return HWY_DYNAMIC_DISPATCH(make_vector_tile)(); }

void vectorised_product(const PlainProduct& product, Range rows) {
  HWY_DYNAMIC_DISPATCH(multiply_rows)(product, rows);
}

void threaded_product(const PlainProduct& product) {
  constexpr std::int64_t tiles_per_task = 4;
  const auto height = vector_tile().rows;
  parallel_for(ceil_div(product.m, height), tiles_per_task,
               [&](std::int64_t begin, std::int64_t end) {
                 vectorised_product(product, {begin * height, std::min(product.m, end * height)});
               });
}

}  // namespace triptych::cpu
#endif
