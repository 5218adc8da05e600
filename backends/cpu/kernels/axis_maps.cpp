// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/axis_maps.h"

#include <algorithm>
#include <cstring>

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
  for (std::int64_t row = begin; row < end; ++row) {
    auto rest = static_cast<std::size_t>(row);
    const std::byte* source = x;
    for (auto offsets = outer_.rbegin(); offsets != outer_.rend(); ++offsets) {
      source += (*offsets)[rest % offsets->size()];
      rest /= offsets->size();
    }
    copy_row_(source, y + row * row_bytes_, inner_);
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
  const auto& inner = axes_.back();
  dense_inner_ = inner.size() > 0 && ascending_by(inner.begin, 1) && ascending_by(inner.index, 1) &&
                 std::all_of(inner.weight.begin(), inner.weight.end(),
                             [](float weight) { return weight == 1; });
  divisor_.resize(axes_.size() - 1);
  for (std::size_t a = divisor_.size(); a-- > 0;) {
    divisor_[a] = rows_;
    rows_ *= axes_[a].size();
  }
}

void TapSum::add_inner(float weight, const float* x, float* y) const {
  const auto& inner = axes_.back();
  if (dense_inner_) {
    const float* source = x + inner.index.front();
    for (std::int64_t i = 0; i < inner.size(); ++i) y[i] += weight * source[i];
    return;
  }
  for (std::size_t i = 0; i + 1 < inner.begin.size(); ++i) {
    float sum = y[i];
    for (auto t = inner.begin[i]; t < inner.begin[i + 1]; ++t) {
      const auto tap = static_cast<std::size_t>(t);
      sum += weight * inner.weight[tap] * x[inner.index[tap]];
    }
    y[i] = sum;
  }
}

void TapSum::add_row(std::size_t axis, std::int64_t row, float weight, const float* x,
                     float* y) const {
  if (axis == divisor_.size()) return add_inner(weight, x, y);
  const auto& taps = axes_[axis];
  const auto p = static_cast<std::size_t>(row / divisor_[axis] % taps.size());
  for (auto t = taps.begin[p]; t < taps.begin[p + 1]; ++t) {
    const auto tap = static_cast<std::size_t>(t);
    add_row(axis + 1, row, weight * taps.weight[tap], x + taps.index[tap], y);
  }
}

void TapSum::run(const float* x, float* y) const {
  const auto inner = axes_.back().size();
  parallel_for(rows_, rows_per_task(inner), [&](std::int64_t begin, std::int64_t end) {
    std::fill(y + begin * inner, y + end * inner, 0.0F);
    for (std::int64_t row = begin; row < end; ++row) add_row(0, row, 1, x, y + row * inner);
    for (auto i = begin * inner; i < end * inner; ++i) y[i] = exact::canonical(y[i]);
  });
}

std::size_t TapSum::resident_bytes() const {
  std::size_t bytes = 0;
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
