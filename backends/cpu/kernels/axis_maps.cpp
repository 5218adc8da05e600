// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/axis_maps.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/simd.h"
#include "backends/host/parallel.h"
#include "core/base/error.h"
#include "core/base/exact_math.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kTaskElements = 16 * 1024;  // less is not worth a task

std::int64_t rows_per_task(std::int64_t row_elements) {
  return std::max<std::int64_t>(kTaskElements / std::max<std::int64_t>(row_elements, 1), 1);
}

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
  parallel_for(rows_, rows_per_task(static_cast<std::int64_t>(inner_.size())),
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
  if (axes_.empty()) axes_ = {copy_taps(Dims{0})};
  cut(axes_.back());
  axes_.pop_back();
  divisor_.resize(axes_.size());
  for (std::size_t a = divisor_.size(); a-- > 0;) {
    divisor_[a] = rows_;
    rows_ *= axes_[a].size();
  }
}

void TapSum::cut(const AxisTaps& inner) {
  row_size_ = inner.size();
  for (std::int64_t begin = 0; begin < row_size_; begin += kPiece) {
    Piece piece{begin, std::min(kPiece, row_size_ - begin), 0, index_.size(), false, false};
    const auto* first = inner.begin.data() + begin;
    for (std::int64_t i = 0; i < piece.size; ++i) {
      piece.taps = std::max(piece.taps, first[i + 1] - first[i]);
    }
    for (std::int64_t t = 0; t < piece.taps; ++t) {
      for (std::int64_t i = 0; i < piece.size; ++i) {
        const auto tap = static_cast<std::size_t>(first[i] + t);
        const bool there = first[i] + t < first[i + 1];
        index_.push_back(there ? static_cast<std::int32_t>(inner.index[tap]) : kNoTap);
        weight_.push_back(there ? inner.weight[tap] : 0);
      }
    }
    const auto is_tap = [](std::int32_t index) { return index != kNoTap; };
    piece.pairs = piece.taps == 2 && std::ranges::all_of(index_.end() - 2 * piece.size,
                                                         index_.end() - piece.size, is_tap);
    piece.dense = piece.taps == 1 && index_[piece.first] != kNoTap;
    for (auto i = piece.first; i < index_.size(); ++i) {
      const auto neighbour = index_[piece.first] + static_cast<std::int32_t>(i - piece.first);
      piece.dense = piece.dense && index_[i] == neighbour && weight_[i] == 1;
    }
    pieces_.push_back(piece);
  }
}

void TapSum::append_terms(std::size_t axis, std::int64_t row, Term term,
                          std::vector<Term>& terms) const {
  if (axis == axes_.size()) return terms.push_back(term);
  const auto& taps = axes_[axis];
  const auto p = static_cast<std::size_t>(row / divisor_[axis] % taps.size());
  for (auto t = taps.begin[p]; t < taps.begin[p + 1]; ++t) {
    const auto tap = static_cast<std::size_t>(t);
    append_terms(axis + 1, row, {term.x + taps.index[tap], term.weight * taps.weight[tap]}, terms);
  }
}

/// The values that a piece's taps read, for the last few rows of x. Neighbouring rows of y share
/// them.
class TapSum::Gathered {
 public:
  Gathered(const TapSum& sum, const Piece& piece)
      : index_(sum.index_.data() + piece.first), count_(piece.taps * piece.size) {}

  /// Element t * size + i is x at the tap t of output i.
  const float* of(const float* x) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (sources_[slot] == x) return values_[slot];
    }
    oldest_ = (oldest_ + 1) % kSlots;
    sources_[oldest_] = x;
    simd([x, index = index_, count = count_, to = values_[oldest_]] {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < count; ++i) to[i] = x[std::max(index[i], 0)];
    });
    return values_[oldest_];
  }

 private:
  static constexpr std::size_t kSlots = 4;
  const std::int32_t* index_;
  std::int64_t count_;
  std::size_t oldest_ = 0;
  const float* sources_[kSlots] = {};
  float values_[kSlots][kPiece * kGatheredTaps];
};

void TapSum::sum_rows(const Piece& piece, const float* x, float* y, std::int64_t begin,
                      std::int64_t end) const {
  const auto size = piece.size;
  const Taps taps{index_.data() + piece.first, weight_.data() + piece.first, size, piece.taps};
  Gathered gathered(*this, piece);
  std::vector<Term> terms;
  for (auto row = begin; row < end; ++row) {
    terms.clear();
    append_terms(0, row, {x, 1}, terms);
    float* to = y + row * row_size_ + piece.begin;
    if (piece.pairs && terms.size() == 1) {
      interpolate<1>(taps, {gathered.of(terms[0].x)}, {terms[0].weight}, to);
      continue;
    }
    if (piece.pairs && terms.size() == 2) {
      const auto* first = gathered.of(terms[0].x);
      interpolate<2>(taps, {first, gathered.of(terms[1].x)}, {terms[0].weight, terms[1].weight},
                     to);
      continue;
    }
    std::fill_n(to, size, 0.0F);
    for (const auto& [source, weight] : terms) {
      if (piece.dense) {
        simd([=, from = source + *taps.index] { add_copies(weight, from, to, size); });
      } else if (taps.count <= kGatheredTaps) {
        simd([=, from = gathered.of(source)] {
          add_taps(
              taps, weight, [=](auto i) { return from[i]; }, to);
        });
      } else {
        simd([=] {
          const auto read = [=](auto i) { return source[std::max(taps.index[i], 0)]; };
          add_taps(taps, weight, read, to);
        });
      }
    }
    simd([=] {
      for (std::int64_t i = 0; i < size; ++i) to[i] = exact::canonical(to[i]);
    });
  }
}

void TapSum::run(const float* x, float* y) const {
  parallel_for(rows_, rows_per_task(row_size_), [&](std::int64_t begin, std::int64_t end) {
    for (const auto& piece : pieces_) sum_rows(piece, x, y, begin, end);
  });
}

std::size_t TapSum::resident_bytes() const {
  std::size_t bytes = index_.size() * sizeof(std::int32_t) + weight_.size() * sizeof(float) +
                      pieces_.size() * sizeof(Piece);
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
