// Parts of vectors, loaded and stored at any address without touching the memory of the other
// lanes. Highway's MaskedLoad and BlendedStore promise neither: without masked instructions they
// may need an aligned address and access the whole vector. Included once for each instruction set,
// as Highway's own headers of this kind.
// SPDX-License-Identifier: Apache-2.0
#if defined(TRIPTYCH_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIPTYCH_LANES_INL_H
#undef TRIPTYCH_LANES_INL_H
#else
#define TRIPTYCH_LANES_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {

/// True when MaskedLoad and BlendedStore are masked instructions. Better instruction sets have
/// lower numbers.
template <class D>
constexpr bool kMasked = HWY_ARCH_X86 != 0 && HWY_TARGET <= HWY_AVX2 &&
                         sizeof(hwy::HWY_NAMESPACE::TFromD<D>) >= 4;

/// Lanes [first, last) of a vector. `last` may lie beyond its end. This one copies lane by lane.
template <class D, bool = kMasked<D>>
class LaneRange {
 public:
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;

  HWY_INLINE LaneRange(D d, std::int64_t last) : LaneRange(d, 0, last) {}
  HWY_INLINE LaneRange(D d, std::int64_t first, std::int64_t last)
      : first_(first),
        last_(std::min(last, static_cast<std::int64_t>(hwy::HWY_NAMESPACE::Lanes(d)))) {}

  /// Lane i from from[i], 0 beyond the range.
  HWY_INLINE V load(D d, const T* from) const {
    HWY_ALIGN T lanes[hwy::HWY_NAMESPACE::MaxLanes(D())] = {};
    for (auto i = first_; i < last_; ++i) lanes[i] = from[i];
    return hwy::HWY_NAMESPACE::Load(d, lanes);
  }

  /// Lane i to to[i], for those of the range.
  HWY_INLINE void store(V value, D d, T* to) const {
    HWY_ALIGN T lanes[hwy::HWY_NAMESPACE::MaxLanes(D())];
    hwy::HWY_NAMESPACE::Store(value, d, lanes);
    for (auto i = first_; i < last_; ++i) to[i] = lanes[i];
  }

 private:
  std::int64_t first_, last_;
};

/// The same by masked instructions.
template <class D>
class LaneRange<D, true> {
 public:
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;

  HWY_INLINE LaneRange(D d, std::int64_t last) : mask_(first_lanes(d, last)) {}
  HWY_INLINE LaneRange(D d, std::int64_t first, std::int64_t last)
      : mask_(hwy::HWY_NAMESPACE::AndNot(first_lanes(d, first), first_lanes(d, last))) {}

  HWY_INLINE V load(D d, const T* from) const {
    return hwy::HWY_NAMESPACE::MaskedLoad(mask_, d, from);
  }
  HWY_INLINE void store(V value, D d, T* to) const {
    hwy::HWY_NAMESPACE::BlendedStore(value, mask_, d, to);
  }

 private:
  using Mask = hwy::HWY_NAMESPACE::Mask<D>;
  static HWY_INLINE Mask first_lanes(D d, std::int64_t count) {
    return hwy::HWY_NAMESPACE::FirstN(d, static_cast<std::size_t>(count));
  }

  Mask mask_;
};

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TRIPTYCH_LANES_INL_H
