// A plane of an image as a window reads it: padded, and cut into the sub-planes of every stride-th
// row and column, so that the operands of one tap at successive outputs are adjacent. A sum or a
// maximum over a window is then one chain per output, all outputs of a plane in one loop
// (tap_chains.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/simd.h"
#include "backends/cpu/windows/copy_rows.h"
#include "backends/cpu/windows/tap_chains.h"
#include "backends/host/parallel.h"
#include "core/ops/conv_geometry.h"
#include "core/tensor/tensor.h"

namespace triptych::cpu {

class WindowPlane {
 public:
  explicit WindowPlane(const Window& window);

  /// False for windows with planes several times as large as the image's.
  static bool pays(const Window& window);

  const Window& window() const { return w_; }
  /// Elements of a plane in this layout, with those that chains read beyond its end.
  std::int64_t elements() const {
    return static_cast<std::int64_t>(phases_.size()) * rows_ * pitch_ + kChainBlock;
  }
  /// Outputs of a chain: rows of pitch() elements. The first window().out[1] of each count, and the
  /// rest rounds them up to whole blocks.
  std::int64_t outputs() const;
  std::int64_t pitch() const { return pitch_; }
  /// Where each tap, row-major, meets output 0, from the start of the laid-out plane.
  std::span<const std::int64_t> taps() const { return taps_; }

  /// For multiply_rows(), where the window steps row by row.
  std::optional<RowWindow> row_window() const {
    if (w_.stride[0] != 1 || w_.dilation[0] != 1) return std::nullopt;
    const RowWindow rows{w_.kernel[0], pitch_, taps().first(static_cast<std::size_t>(w_.kernel[1])),
                         w_.out[0], w_.out[1]};
    return shares_rows(rows) ? std::optional(rows) : std::nullopt;
  }

  /// Writes `padding` wherever a plane has no element. The parts that lay_out does not change.
  template <class T>
  void pad(T padding, T* to) const {
    std::fill_n(to, elements(), padding);
  }

  /// Writes element(x) for all elements of a plane that taps meet.
  template <class T, class Element>
  void lay_out(const T* x, const Element& element, T* to) const {
    if constexpr (std::is_same_v<Element, std::identity>) {
      if (w_.stride[1] <= 2 || w_.stride[1] == 4) return lay_out_rows(x, to);
    }
    simd([&] {
      for (const auto& phase : phases_) {
        for (auto r = phase.rows.begin; r < phase.rows.end; ++r) {
          const T* from = x + (r * w_.stride[0] + phase.row) * w_.in[1] + phase.column;
          T* target = to + r * pitch_;
          const auto [begin, end] = phase.columns;
          if (w_.stride[1] == 1) {
#pragma GCC ivdep
            for (auto c = begin; c < end; ++c) target[c] = element(from[c]);
          } else if (w_.stride[1] == 2) {
#pragma GCC ivdep
            for (auto c = begin; c < end; ++c) target[c] = element(from[2 * c]);
          } else {
            for (auto c = begin; c < end; ++c) target[c] = element(from[c * w_.stride[1]]);
          }
        }
        to += rows_ * pitch_;
      }
    });
  }

  /// Copies the rows of outputs that a chain has left to a plane without gaps.
  template <class T>
  void copy_outputs(const T* outputs, T* y) const {
    const RowCopy rows = {w_.out[0], w_.out[1], pitch_, w_.out[1]};
    copy_rows(outputs, rows, y);
  }

  /// Writes the first element of each output's window that is no padding, from a laid-out plane.
  template <class T>
  void first_elements(const T* plane, T* outputs) const {
    for (std::int64_t oy = 0, end = 0; oy < w_.out[0]; ++oy, outputs += pitch_) {
      const auto first = first_tap(0, oy);
      const auto* taps = &taps_[static_cast<std::size_t>(first * w_.kernel[1])];
      const auto* row = plane + oy * pitch_;
      if (oy == end) {  // all rows that begin with the same tap
        while (end < w_.out[0] && first_tap(0, end) == first) ++end;
        std::copy_n(row + taps[0], (end - oy) * pitch_, outputs);
      }
      for (std::int64_t ox = 0; ox * w_.stride[1] < w_.pad_begin[1] && ox < w_.out[1]; ++ox) {
        outputs[ox] = row[taps[first_tap(1, ox)] + ox];
      }
    }
  }

 private:
  struct Span {
    std::int64_t begin, end;
  };
  /// Every stride-th row and column, with element (0, 0) at (row, column) of the plane. `rows` and
  /// `columns` are those within it.
  struct Phase {
    std::int64_t row, column;
    Span rows, columns;
  };

  template <class T>
  void lay_out_rows(const T* x, T* to) const {
    for (const auto& phase : phases_) {
      const auto [row, column] = std::pair(phase.rows.begin, phase.columns.begin);
      copy_rows(
          x + (row * w_.stride[0] + phase.row) * w_.in[1] + column * w_.stride[1] + phase.column,
          {.rows = phase.rows.end - row,
           .columns = phase.columns.end - column,
           .from_stride = w_.stride[0] * w_.in[1],
           .to_stride = pitch_,
           .step = w_.stride[1]},
          to + row * pitch_ + column);
      to += rows_ * pitch_;
    }
  }

  /// The elements of an axis within the plane, `count` of them beginning at `first`.
  Span within(int axis, std::int64_t first, std::int64_t count) const;
  std::int64_t phase_of(std::int64_t row, std::int64_t column);
  /// The first tap along `axis` that is no padding at this output.
  std::int64_t first_tap(int axis, std::int64_t output) const {
    const auto before = w_.pad_begin[axis] - output * w_.stride[axis];
    return before <= 0 ? 0 : (before + w_.dilation[axis] - 1) / w_.dilation[axis];
  }

  Window w_;
  std::int64_t rows_, pitch_;
  std::vector<Phase> phases_;
  std::vector<std::int64_t> taps_;
};

/// A laid-out plane and the outputs of its windows, for each thread, in a kernel's scratch.
template <class T>
class PlaneScratch {
 public:
  PlaneScratch(const Window& window, int threads) : layout_(window), threads_(threads) {}

  const WindowPlane& layout() const { return layout_; }
  std::size_t bytes() const { return threads_ * thread_bytes(); }
  /// Those of this thread.
  T* plane(std::byte* scratch) const {
    const auto thread = static_cast<std::size_t>(thread_index());
    return reinterpret_cast<T*>(scratch + thread * thread_bytes());
  }
  T* outputs(std::byte* scratch) const { return plane(scratch) + layout_.elements(); }

 private:
  std::size_t thread_bytes() const {
    const auto elements = static_cast<std::size_t>(layout_.elements() + layout_.outputs());
    return (elements * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

  WindowPlane layout_;
  std::size_t threads_;
};

}  // namespace triptych::cpu
