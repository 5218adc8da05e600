// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/pack.h"

#include <algorithm>

#include "backends/cpu/gemm/microkernel.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/base/float16.h"

namespace triptych::cpu {
namespace {

/// The slow way that always works: element by element.
void pack_elements(const RowSource& source, const float* rows, std::int64_t height, float* to,
                   Rounding rounding) {
  for (const auto tap : source.tap_offsets) {
    for (std::int64_t c = 0; c < source.channels; ++c) {
      const float* from = rows + tap + c * source.channel_stride;
      for (std::int64_t r = 0; r < height; ++r) {
        const float value = from[r * source.row_stride];
        *to++ = rounding == Rounding::ToBf16 ? round_to_bf16(value) : value;
      }
    }
  }
}

}  // namespace

void PatchGrid::flatten_pointwise() {
  const bool same = in[0] == out[0] && in[1] == out[1] && stride[0] == 1 && stride[1] == 1;
  if (!same || taps.size() != 1 || taps[0] != std::array<std::int64_t, 2>{0, 0}) return;
  in[1] = out[1] = positions();
  in[0] = out[0] = 1;
}

Range PatchGrid::live(Range n) const {
  const auto first = n.begin / out[1] * stride[0], last = (n.end - 1) / out[1] * stride[0];
  const auto reaches = [&](const auto& tap) {
    return last + tap[0] >= 0 && first + tap[0] < in[0];
  };
  const auto begin = std::ranges::find_if(taps, reaches);
  const auto end = std::find_if(taps.rbegin(), std::make_reverse_iterator(begin), reaches).base();
  return {channels * (begin - taps.begin()), channels * (end - taps.begin())};
}

void pack_tile(const RowSource& source, std::int64_t height, float* to, Rounding rounding) {
  const float* rows = source.data;
  const auto taps = static_cast<std::int64_t>(source.tap_offsets.size());
  const auto first_tap = taps > 0 ? source.tap_offsets.front() : 0;
  const auto block = source.channels * height;
  if (source.row_stride == 1 || source.channel_stride == 1) {
    const bool straight = source.row_stride == 1;
    for (const auto tap : source.tap_offsets) {
      if (straight) {
        copy_matrix({rows + tap, source.channel_stride, source.channels, height}, to, height,
                    rounding);
      } else {
        transpose_matrix({rows + tap, source.row_stride, height, source.channels}, to, height,
                         rounding);
      }
      to += block;
    }
  } else if (taps > 1 && source.tap_offsets.back() - first_tap == taps - 1) {
    for (std::int64_t c = 0; c < source.channels; ++c) {
      const float* from = rows + first_tap + c * source.channel_stride;
      transpose_matrix({from, source.row_stride, height, taps}, to + c * height, block, rounding);
    }
  } else {
    pack_elements(source, rows, height, to, rounding);
  }
}

void pack_rows(const RowSource& source, std::int64_t m, float* to, Rounding rounding) {
  const RowTiles tiles(m);
  const auto k = source.k();
  const auto grain = ceil_div(std::int64_t{16384}, std::max<std::int64_t>(1, k * tiles.height(0)));
  parallel_for(tiles.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto tile = begin; tile < end; ++tile) {
      const auto row = tiles.begin(tile);
      RowSource rows = source;
      rows.data += row * source.row_stride;
      pack_tile(rows, tiles.height(tile), to + row * k, rounding);
    }
  });
}

void pack_columns(const float* data, std::int64_t stride, bool transposed, Range k, Range n,
                  float* panels, Rounding rounding) {
  // Few rows at a time where they lie far apart, so that each is read as the stream that it is.
  constexpr std::int64_t few = 8;
  const auto columns = microkernels().columns;
  const auto rows = transposed ? k.size() : few;
  for (auto row = k.begin; row < k.end; row += rows) {
    const auto depth = std::min(rows, k.end - row);
    float* to = panels + (row - k.begin) * columns;
    for (auto first = n.begin; first < n.end; first += columns, to += k.size() * columns) {
      const auto width = std::min<std::int64_t>(columns, n.end - first);
      if (width < columns) std::fill_n(to, depth * columns, 0.0F);
      if (transposed) {
        transpose_matrix({data + first * stride + row, stride, width, depth}, to, columns,
                         rounding);
      } else {
        copy_matrix({data + row * stride + first, stride, depth, width}, to, columns, rounding);
      }
    }
  }
}

std::int64_t packed_columns(std::int64_t n, std::int64_t k) {
  const std::int64_t columns = microkernels().columns;
  return checked_mul(round_up(n, columns), k);
}

}  // namespace triptych::cpu
