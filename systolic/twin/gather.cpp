// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/gather.h"

#include <algorithm>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace triptych::mmu {
namespace {

/// The elements under one run of taps for every position.
template <class Element>
void gather_run(const BufferView<Element>& buffer, const SetStream& geometry,
                std::span<const Position> positions, const TapRun& run, std::size_t position_stride,
                float* out) {
  for (const Position& position : positions) {
    if (inside(geometry, position, run.tap)) {
      const Element* from = buffer.at(position.address + run.tap.offset, run.lane);
      for (std::uint32_t i = 0; i < run.length; ++i) out[i] = to_number(from[i]);
    } else {
      std::fill_n(out, run.length, 0.0F);
    }
    out += position_stride;
  }
}

#if defined(__x86_64__)
// Runs of a few elements are common: masks make them as fast as those of a vector.
__attribute__((target("avx512bw,avx512vl"))) void gather_run_avx512(
    const BufferView<std::uint16_t>& buffer, const SetStream& geometry,
    std::span<const Position> positions, const TapRun& run, std::size_t position_stride,
    float* out) {
  constexpr std::uint32_t lanes = 16;
  constexpr __mmask16 all = 0xFFFF;
  for (const Position& position : positions) {
    const bool real = inside(geometry, position, run.tap);
    const std::uint16_t* from = buffer.at(position.address + run.tap.offset, run.lane);
    for (std::uint32_t i = 0; i < run.length; i += lanes) {
      const std::uint32_t left = run.length - i;
      const auto mask = static_cast<__mmask16>(left < lanes ? (1U << left) - 1 : all);
      const auto there = static_cast<__mmask16>(real ? mask : 0);
      const __m512i wide =
          _mm512_maskz_cvtepu16_epi32(all, _mm256_maskz_loadu_epi16(there, from + i));
      _mm512_mask_storeu_epi32(out + i, mask, _mm512_maskz_slli_epi32(all, wide, 16));
    }
    out += position_stride;
  }
}
#endif

template <class Element>
auto choose_gather_run() {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Element, std::uint16_t>)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      return gather_run_avx512;
#endif
  return gather_run<Element>;
}

}  // namespace

void append_runs(TapWalk& walk, std::uint32_t first, std::uint32_t start, std::uint32_t count,
                 std::uint32_t lanes, std::vector<TapRun>& runs) {
  std::uint32_t lane = start % lanes;
  for (std::uint32_t i = 0; i < count; ++i, walk.next()) {
    if (i > 0 && lane != 0 && runs.back().tap == walk.tap())
      ++runs.back().length;
    else
      runs.push_back({first + i, lane, 1, walk.tap()});
    if (++lane == lanes) lane = 0;
  }
}

template <class Element>
void gather(const BufferView<Element>& buffer, const SetStream& geometry,
            std::span<const Position> positions, const std::vector<TapRun>& runs,
            std::size_t position_stride, float* target) {
  static const auto run_of = choose_gather_run<Element>();
  for (const TapRun& run : runs)
    run_of(buffer, geometry, positions, run, position_stride, target + run.first);
}

template void gather(const BufferView<std::uint16_t>&, const SetStream&, std::span<const Position>,
                     const std::vector<TapRun>&, std::size_t, float*);
template void gather(const BufferView<std::int8_t>&, const SetStream&, std::span<const Position>,
                     const std::vector<TapRun>&, std::size_t, float*);

}  // namespace triptych::mmu
