// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/axis_maps.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/grain.h"
#include "backends/cpu/simd.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/exact_math.h"

namespace triptych::cpu {
namespace {

bool ascending_by(const Dims& values, std::int64_t step) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] != values[i - 1] + step) return false;
  }
  return true;
}

template <std::size_t Size>
void copy_run(const std::byte* x, std::byte* y, const Dims& offsets) {
  std::memcpy(y, x + offsets.front(), offsets.size() * Size);
}

template <std::size_t Size>
void copy_each(const std::byte* x, std::byte* y, const Dims& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i) std::memcpy(y + i * Size, x + offsets[i], Size);
}

using CopyRow = void (*)(const std::byte*, std::byte*, const Dims&);

CopyRow row_function(std::size_t element_size, bool contiguous) {
  switch (element_size) {
    case 1:
      return contiguous ? copy_run<1> : copy_each<1>;
    case 2:
      return contiguous ? copy_run<2> : copy_each<2>;
    case 4:
      return contiguous ? copy_run<4> : copy_each<4>;
    default:
      TRIPTYCH_ASSERT(element_size == 8);
      return contiguous ? copy_run<8> : copy_each<8>;
  }
}

/// Outputs of a row that TapSum computes at once.
constexpr std::int64_t kPiece = 256;
/// With more taps, each value of x is read for few rows of y.
constexpr std::int64_t kGatheredTaps = 4;

/// y[i] += weight * x[i].
[[gnu::always_inline]] inline void add_copies(float weight, const float* x, float* y,
                                              std::int64_t size) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < size; ++i) y[i] += weight * x[i];
}

/// The index where an output has fewer taps than others of its piece.
constexpr std::int32_t kNoTap = -1;

/// Outputs of a piece are rounded up to so many: no loop over them ends within a vector.
constexpr std::int64_t kWholeVector = 16;

/// Elements of a vector that a shuffle permutes.
constexpr std::int64_t kWindow = 8;
using Floats = float __attribute__((vector_size(kWindow * sizeof(float))));
using Places = std::int32_t __attribute__((vector_size(kWindow * sizeof(std::int32_t))));

/// moved[i] = values[places[i]].
[[gnu::always_inline]] inline void permute(const Floats& values, const Places& places,
                                           Floats& moved) {
#if defined(__clang__)
  for (int i = 0; i < kWindow; ++i) moved[i] = values[places[i]];
#else
  moved = __builtin_shuffle(values, places);
#endif
}

/// The taps of a piece: tap t of output i at t * size + i.
struct Taps {
  const std::int32_t* index;
  const float* weight;
  std::int64_t size, count;
};

/// y[i] += weight * taps.weight[t][i] * value(t, i) for ascending t, where output i has a tap t.
template <class Value>
[[gnu::always_inline]] inline void add_taps(const Taps& taps, float weight, const Value& value,
                                            float* y) {
  const auto size = taps.size;
  for (std::int64_t t = 0; t < taps.count; ++t) {
    const auto* index = taps.index + t * size;
    const auto* weights = taps.weight + t * size;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) {
      const float sum = y[i] + weight * weights[i] * value(t * size + i);
      y[i] = exact::select(index[i] == kNoTap, y[i], sum);
    }
  }
}

/// Linear interpolation of whole outputs, all taps of `kTerms` rows at once: as add_taps for one
/// row after the other.
template <std::size_t kTerms>
void interpolate(const Taps& taps, const std::array<const float*, kTerms>& from,
                 const std::array<float, kTerms>& weights, float* y) {
  simd([=, size = taps.size, first = taps.weight, second = taps.weight + taps.size,
        index = taps.index + taps.size] {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) {
      float sum = 0;
      for (std::size_t term = 0; term < kTerms; ++term) {
        sum += weights[term] * first[i] * from[term][i];
        const float both = sum + weights[term] * second[i] * from[term][size + i];
        sum = exact::select(index[i] == kNoTap, sum, both);
      }
      y[i] = exact::canonical(sum);
    }
  });
}

}  // namespace

IndexCopy::IndexCopy(const std::vector<Dims>& sources, const Shape& x, std::size_t element_size)
    : outer_(sources) {
  const auto bytes = static_cast<std::int64_t>(element_size);
  const auto strides = x.strides();
  for (std::size_t a = 0; a < outer_.size(); ++a) {
    for (auto& offset : outer_[a]) offset *= strides[a] * bytes;
  }
  if (outer_.empty()) outer_ = {{0}};
  inner_ = std::move(outer_.back());
  outer_.pop_back();
  for (const auto& offsets : outer_) rows_ *= static_cast<std::int64_t>(offsets.size());
  row_bytes_ = static_cast<std::int64_t>(inner_.size()) * bytes;
  if (row_bytes_ == 0) rows_ = 0;
  copy_row_ = row_function(element_size, ascending_by(inner_, bytes));
}

void IndexCopy::copy_rows(const std::byte* x, std::byte* y, std::int64_t begin,
                          std::int64_t end) const {
  const std::byte* last = nullptr;
  for (std::int64_t row = begin; row < end; ++row) {
    auto rest = static_cast<std::size_t>(row);
    const std::byte* source = x;
    for (auto offsets = outer_.rbegin(); offsets != outer_.rend(); ++offsets) {
      source += (*offsets)[rest % offsets->size()];
      rest /= offsets->size();
    }
    auto* to = y + row * row_bytes_;
    if (source == last) {
      std::memcpy(to, to - row_bytes_, static_cast<std::size_t>(row_bytes_));
    } else {
      copy_row_(source, to, inner_);
    }
    last = source;
  }
}

void IndexCopy::run(const std::byte* x, std::byte* y) const {
  parallel_for(rows_, grain_of(static_cast<std::int64_t>(inner_.size())),
               [&](std::int64_t begin, std::int64_t end) { copy_rows(x, y, begin, end); });
}

std::size_t IndexCopy::resident_bytes() const {
  std::size_t entries = inner_.size();
  for (const auto& offsets : outer_) entries += offsets.size();
  return entries * sizeof(std::int64_t);
}

TapSum::TapSum(std::vector<AxisTaps> axes, const Shape& x) : axes_(std::move(axes)) {
  const auto strides = x.strides();
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    for (auto& index : axes_[a].index) index *= strides[a];
  }
  while (axes_.size() < 2) axes_.insert(axes_.begin(), copy_taps(Dims{0}));
  cut(axes_.back(), x.rank() == 0 ? 1 : x[x.rank() - 1]);
  axes_.pop_back();
  divisor_.resize(axes_.size());
  for (std::size_t a = divisor_.size(); a-- > 0;) {
    divisor_[a] = rows_;
    rows_ *= axes_[a].size();
  }
}

void TapSum::cut(const AxisTaps& inner, std::int64_t x_size) {
  row_size_ = inner.size();
  for (std::int64_t begin = 0; begin < row_size_; begin += kPiece) {
    Piece piece{.begin = begin,
                .size = std::min(kPiece, row_size_ - begin),
                .first = index_.size(),
                .first_window = window_.size()};
    piece.width = round_up(piece.size, kWholeVector);
    const auto* first = inner.begin.data() + begin;
    for (std::int64_t i = 0; i < piece.size; ++i) {
      piece.taps = std::max(piece.taps, first[i + 1] - first[i]);
    }
    std::vector<bool> is_full;  // by tap: every output has it
    for (std::int64_t t = 0; t < piece.taps; ++t) {
      is_full.push_back(true);
      for (std::int64_t i = 0; i < piece.width; ++i) {
        const bool there = i < piece.size && first[i] + t < first[i + 1];
        const auto tap = there ? static_cast<std::size_t>(first[i] + t) : 0;
        index_.push_back(there ? static_cast<std::int32_t>(inner.index[tap]) : kNoTap);
        weight_.push_back(there ? inner.weight[tap] : 0);
        if (i < piece.size) is_full.back() = is_full.back() && there;
      }
    }
    piece.pairs = piece.taps == 2 && is_full[0];
    piece.dense = piece.taps == 1 && is_full[0];
    for (std::int64_t i = 0; i < piece.size && piece.dense; ++i) {
      const auto at = piece.first + static_cast<std::size_t>(i);
      const auto neighbour = index_[piece.first] + static_cast<std::int32_t>(i);
      piece.dense = index_[at] == neighbour && weight_[at] == 1;
    }
    find_windows(piece, x_size);
    pieces_.push_back(piece);
  }
}

void TapSum::find_windows(Piece& piece, std::int64_t x_size) {
  place_.resize(index_.size());
  piece.windows = x_size >= kWindow;
  for (std::int64_t begin = 0; begin < piece.width && piece.windows; begin += kWindow) {
    const auto for_each_tap = [&](const auto& visit) {
      for (std::int64_t t = 0; t < piece.taps; ++t) {
        const auto at = piece.first + static_cast<std::size_t>(t * piece.width + begin);
        for (std::size_t i = at; i < at + kWindow; ++i) {
          if (index_[i] != kNoTap) visit(i);
        }
      }
    };
    auto first = static_cast<std::int32_t>(x_size - kWindow);
    for_each_tap([&](std::size_t i) { first = std::min(first, index_[i]); });
    for_each_tap([&](std::size_t i) {
      place_[i] = index_[i] - first;
      piece.windows = piece.windows && place_[i] < kWindow;
    });
    window_.push_back(first);
  }
}

void TapSum::append_terms(std::size_t axis, std::int64_t row, Term term,
                          std::vector<Term>& terms) const {
  if (axis + 1 == axes_.size()) return terms.push_back(term);
  const auto& taps = axes_[axis];
  const auto p = static_cast<std::size_t>(row / divisor_[axis] % taps.size());
  for (auto t = taps.begin[p]; t < taps.begin[p + 1]; ++t) {
    const auto tap = static_cast<std::size_t>(t);
    append_terms(axis + 1, row, {term.x + taps.index[tap], term.weight * taps.weight[tap]}, terms);
  }
}

/// Calls body(row, terms) for rows of y. The terms of all axes but the last two are combined once
/// for the rows that share them.
template <class Body>
void TapSum::for_each_row(const float* x, std::int64_t begin, std::int64_t end,
                          const Body& body) const {
  const auto& taps = axes_.back();
  std::vector<Term> outer, terms;
  auto p = static_cast<std::size_t>(begin % taps.size());
  for (auto row = begin; row < end; ++row, ++p) {
    if (p == static_cast<std::size_t>(taps.size())) p = 0;
    if (p == 0 || row == begin) {
      outer.clear();
      append_terms(0, row, {x, 1}, outer);
    }
    terms.clear();
    for (const auto& term : outer) {
      for (auto t = taps.begin[p]; t < taps.begin[p + 1]; ++t) {
        const auto tap = static_cast<std::size_t>(t);
        terms.push_back({term.x + taps.index[tap], term.weight * taps.weight[tap]});
      }
    }
    body(row, terms);
  }
}

/// The values that a piece's taps read, for the last few rows of x. Neighbouring rows of y share
/// them.
class TapSum::Gathered {
 public:
  Gathered(const TapSum& sum, const Piece& piece)
      : index_(sum.index_.data() + piece.first),
        count_(piece.taps * piece.width),
        width_(piece.width),
        place_(sum.place_.data() + piece.first),
        window_(piece.windows ? sum.window_.data() + piece.first_window : nullptr) {}

  /// Element t * size + i is x at the tap t of output i.
  const float* of(const float* x) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (sources_[slot] == x) return values_[slot];
    }
    oldest_ = (oldest_ + 1) % kSlots;
    sources_[oldest_] = x;
    window_ != nullptr ? shuffle(x, values_[oldest_]) : gather(x, values_[oldest_]);
    return values_[oldest_];
  }

 private:
  void gather(const float* x, float* to) const {
    simd([x, to, index = index_, count = count_] {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) to[i] = x[std::max(index[i], 0)];
    });
  }
  void shuffle(const float* x, float* to) const {
    simd([x, to, place = place_, window = window_, count = count_, width = width_] {
      for (std::int64_t begin = 0; begin < width; begin += kWindow) {
        Floats values;
        std::memcpy(&values, x + window[begin / kWindow], sizeof(values));
        for (std::int64_t i = begin; i < count; i += width) {
          Places places;
          std::memcpy(&places, place + i, sizeof(places));
          Floats moved;
          permute(values, places, moved);
          std::memcpy(to + i, &moved, sizeof(moved));
        }
      }
    });
  }

  static constexpr std::size_t kSlots = 4;
  const std::int32_t* index_;
  std::int64_t count_, width_;
  const std::int32_t *place_, *window_;  ///< window_: nullptr where x is gathered
  std::size_t oldest_ = 0;
  const float* sources_[kSlots] = {};
  float values_[kSlots][kPiece * kGatheredTaps];
};

void TapSum::sum_rows(const Piece& piece, const float* x, float* y, std::int64_t begin,
                      std::int64_t end) const {
  const auto size = piece.size;
  const Taps taps{index_.data() + piece.first, weight_.data() + piece.first, piece.width,
                  piece.taps};
  Gathered gathered(*this, piece);
  alignas(kAlignment) float line[kPiece];
  for_each_row(x, begin, end, [&](std::int64_t row, const std::vector<Term>& terms) {
    float* to = y + row * row_size_ + piece.begin;
    // The place behind a row is written next, unless another thread or piece owns it.
    const bool in_place = pieces_.size() == 1 && (end - row - 1) * row_size_ >= piece.width - size;
    float* sums = in_place ? to : line;
    if (piece.pairs && terms.size() == 1) {
      interpolate<1>(taps, {gathered.of(terms[0].x)}, {terms[0].weight}, sums);
    } else if (piece.pairs && terms.size() == 2) {
      const auto* first = gathered.of(terms[0].x);
      interpolate<2>(taps, {first, gathered.of(terms[1].x)}, {terms[0].weight, terms[1].weight},
                     sums);
    } else {
      sum_terms(piece, terms, gathered, sums);
    }
    if (!in_place) std::copy_n(line, size, to);
  });
}

/// y = the terms one after the other, for whole vectors of outputs.
void TapSum::sum_terms(const Piece& piece, const std::vector<Term>& terms, Gathered& gathered,
                       float* y) const {
  const Taps taps{index_.data() + piece.first, weight_.data() + piece.first, piece.width,
                  piece.taps};
  std::fill_n(y, piece.width, 0.0F);
  for (const auto& term : terms) {
    const auto* source = term.x;
    const float weight = term.weight;
    if (piece.dense) {
      simd([=, from = source + *taps.index, size = piece.size] {
        add_copies(weight, from, y, size);
      });
    } else if (taps.count <= kGatheredTaps) {
      simd([=, from = gathered.of(source)] {
        add_taps(
            taps, weight, [=](auto i) { return from[i]; }, y);
      });
    } else {
      simd([=] {
        const auto read = [=](auto i) { return source[std::max(taps.index[i], 0)]; };
        add_taps(taps, weight, read, y);
      });
    }
  }
  simd([=, width = piece.width] {
    for (std::int64_t i = 0; i < width; ++i) y[i] = exact::canonical(y[i]);
  });
}

void TapSum::run(const float* x, float* y) const {
  parallel_for(rows_, grain_of(kSlowOperation * row_size_),
               [&](std::int64_t begin, std::int64_t end) {
                 for (const auto& piece : pieces_) sum_rows(piece, x, y, begin, end);
               });
}

std::size_t TapSum::resident_bytes() const {
  std::size_t bytes = (index_.size() + window_.size() + place_.size()) * sizeof(std::int32_t) +
                      weight_.size() * sizeof(float) + pieces_.size() * sizeof(Piece);
  for (const auto& axis : axes_) {
    bytes += (axis.begin.size() + axis.index.size()) * sizeof(std::int64_t) +
             axis.weight.size() * sizeof(float);
  }
  return bytes;
}

Verdict IndexCopyKernel::accepts(const KernelQuery& query) { return accepts_dense(query); }

IndexCopyKernel::IndexCopyKernel(const KernelQuery& query, const std::vector<Dims>& sources)
    : copy_(sources, query.inputs[0].spec.shape, dtype_size(query.inputs[0].spec.dtype)) {}

Verdict TapSumKernel::accepts(const KernelQuery& query) {
  if (query.inputs[0].spec.dtype != DType::F32) return Verdict::no("only f32");
  return accepts_dense(query);
}

TapSumKernel::TapSumKernel(const KernelQuery& query, std::vector<AxisTaps> taps)
    : sum_(std::move(taps), query.inputs[0].spec.shape) {}

}  // namespace triptych::cpu
