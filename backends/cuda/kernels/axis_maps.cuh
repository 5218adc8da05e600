// The two engines behind everything that works axis by axis but is no strided copy: reading through
// index tables (Pad, the gradient of Slice, Resize by nearest), and summing taps (linear Resize and
// the gradients of Resize and Pad). One thread per element of y.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/device_table.h"
#include "backends/cuda/kernels/strided_copy.cuh"
#include "core/ops/axis_taps.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// One axis of y, and the mapping of its indices to x: `x` elements per index, or a table from
/// entry `x` on.
struct MapAxis {
  std::int64_t size = 1;
  std::int64_t divisor = 1;  ///< elements of y from one index to the next, were y dense
  std::int64_t y = 0, x = 0;

  __device__ std::int64_t index(std::int64_t i) const { return i / divisor % size; }
};

/// The axes that copy x index by index, merged where both sides allow, and those with tables.
struct AxisMap {
  static constexpr int kMostAxes = 8;
  std::int64_t elements = 0;
  int copied_axes = 0, table_axes = 0;
  MapAxis copied[kMostAxes], tables[kMostAxes];

  /// Adds where the copied axes stand at element i.
  __device__ void add_copied(std::int64_t i, std::int64_t& y, std::int64_t& x) const {
    for (int a = 0; a < copied_axes; ++a) {
      const std::int64_t index = copied[a].index(i);
      y += index * copied[a].y;
      x += index * copied[a].x;
    }
  }

  /// Appends axes from y's last to its first.
  void append_copied(std::int64_t size, std::int64_t y, std::int64_t x);
  void append_table(std::int64_t size, std::int64_t y, std::size_t first_entry) {
    tables[table_axes++] = {size, elements, y, static_cast<std::int64_t>(first_entry)};
    elements *= size;
  }
};

inline void AxisMap::append_copied(std::int64_t size, std::int64_t y, std::int64_t x) {
  const auto divisor = elements;
  elements *= size;
  if (copied_axes > 0) {
    MapAxis& inner = copied[copied_axes - 1];
    if (inner.divisor * inner.size == divisor && inner.size * inner.y == y &&
        inner.size * inner.x == x) {
      inner.size *= size;
      return;
    }
  }
  if (size != 1) copied[copied_axes++] = {size, divisor, y, x};
}

/// Elements of a view's memory, from its first to its last.
inline std::int64_t view_span_of(const StridedView& view) {
  if (view.shape.elements() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t a = 0; a < view.strides.size(); ++a) {
    last += (view.shape.dims()[a] - 1) * view.strides[a];
  }
  return last + 1;
}

/// y[p] = x[sources[0][p_0], ..., sources[k][p_k]], or `fill` where a source is -1.
template <class T>
__global__ void index_copy_kernel(Global<const T> x, Global<T> y, AxisMap map,
                                  Global<const std::int64_t> sources, T fill) {
  for (auto i = global_thread(); i < map.elements; i += all_threads()) {
    std::int64_t y_at = 0, x_at = 0;
    map.add_copied(i, y_at, x_at);
    bool inside = true;
    for (int a = 0; a < map.table_axes; ++a) {
      const std::int64_t index = map.tables[a].index(i);
      const std::int64_t source = sources[map.tables[a].x + index];
      y_at += index * map.tables[a].y;
      x_at += source;
      inside = inside && source >= 0;
    }
    T value = fill;
    if (inside) value = x[x_at];
    y[y_at] = value;
  }
}

/// A kernel that reads input 0 through an index table per axis of output 0. Takes strided operands.
class IndexCopyKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_rank(query); }

  /// `fill` holds the bits of the element that -1 stands for.
  IndexCopyKernel(const KernelQuery& query, Device& device, const std::vector<Dims>& sources,
                  std::uint64_t fill = 0)
      : element_size_(dtype_size(query.inputs[0].spec.dtype)),
        fill_(fill),
        x_(operand_view(query.inputs[0])),
        y_(operand_view(query.outputs[0])) {
    map_.elements = 1;
    std::vector<std::int64_t> table;
    for (std::size_t a = sources.size(); a-- > 0;) append_axis(a, sources[a], table);
    entries_ = static_cast<std::int64_t>(table.size());
    table_ = copy_to_device(device, table);
  }

  std::size_t resident_bytes() const override { return table_->size(); }

  void run(const KernelArgs& args) override {
    if (map_.elements == 0) return;
    visit_unit(element_size_, [&](auto unit) {
      using T = decltype(unit);
      if constexpr (std::is_integral_v<T>) {
        launch(args.stream, "index_copy", one_dimension(map_.elements), index_copy_kernel<T>,
               Global(args.in<T>(0), view_span_of(x_)), Global(args.out<T>(0), view_span_of(y_)),
               map_, Global(reinterpret_cast<const std::int64_t*>(table_->data()), entries_),
               static_cast<T>(fill_));
      }
    });
  }

 private:
  void append_axis(std::size_t a, const Dims& sources, std::vector<std::int64_t>& table) {
    const auto size = static_cast<std::int64_t>(sources.size());
    bool copies = true;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      copies = copies && sources[i] == static_cast<std::int64_t>(i);
    }
    if (copies) return map_.append_copied(size, y_.strides[a], x_.strides[a]);
    map_.append_table(size, y_.strides[a], table.size());
    for (const auto source : sources) {
      table.push_back(source < 0 ? -1 : source * x_.strides[a]);
    }
  }

  std::size_t element_size_;
  std::uint64_t fill_;
  StridedView x_, y_;
  AxisMap map_;
  std::int64_t entries_ = 0;
  std::unique_ptr<DeviceBuffer> table_;
};

/// One tap of an axis: where it reads, from the axis' first element, and its weight.
struct WeightedTap {
  std::int64_t offset = 0;
  float weight = 1;
};

/// Taps of all axes with tables. Those of table entry e are [begins[e], begins[e + 1]).
struct TapTables {
  Global<const std::int64_t> begins;
  Global<const WeightedTap> taps;
};

/// The sum of one element of y, over axes with known ranges of taps.
template <int kAxes>
struct TapSum {
  struct TapRange {
    std::int64_t begin, end;
  };
  TapRange ranges[kAxes + 1];
  float sum;

  /// Adds all combinations of taps of the axes from kAxis on, the last axis fastest.
  template <int kAxis = 0>
  __device__ void add(const Global<const float>& x, const TapTables& tables, std::int64_t at,
                      float weight) {
    if constexpr (kAxis == kAxes) {
      const float value = x[at];
      sum += weight * value;
    } else {
      for (auto t = ranges[kAxis].begin; t < ranges[kAxis].end; ++t) {
        const WeightedTap tap = tables.taps[t];
        this->template add<kAxis + 1>(x, tables, at + tap.offset, weight * tap.weight);
      }
    }
  }
};

/// The sum of core/ops/axis_taps.h in its stated order. An axis that copies x has one tap of weight
/// 1, which changes no bit: only the kAxes others have taps.
template <int kAxes>
__global__ void tap_sum_kernel(Global<const float> x, Global<float> y, AxisMap map,
                               TapTables tables) {
  for (auto i = global_thread(); i < map.elements; i += all_threads()) {
    std::int64_t y_at = 0, x_at = 0;
    map.add_copied(i, y_at, x_at);
    TapSum<kAxes> sum{};
    for (int a = 0; a < kAxes; ++a) {
      // Appended from y's last axis on.
      const MapAxis& axis = map.tables[kAxes - 1 - a];
      const std::int64_t index = axis.index(i);
      y_at += index * axis.y;
      sum.ranges[a].begin = tables.begins[axis.x + index];
      sum.ranges[a].end = tables.begins[axis.x + index + 1];
    }
    sum.add(x, tables, x_at, 1.0F);
    y[y_at] = exact::canonical(sum.sum);
  }
}

/// A kernel that is one map of taps from input 0 to output 0, f32. Takes strided operands.
class TapSumKernel : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[0].spec.dtype != DType::F32) return Verdict::no("only f32");
    return accepts_rank(query);
  }

  TapSumKernel(const KernelQuery& query, Device& device, const std::vector<AxisTaps>& axes)
      : x_(operand_view(query.inputs[0])), y_(operand_view(query.outputs[0])) {
    map_.elements = 1;
    std::vector<std::int64_t> begins;
    std::vector<WeightedTap> taps;
    for (std::size_t a = axes.size(); a-- > 0;) {
      const auto& axis = axes[a];
      if (copies(axis)) {
        map_.append_copied(axis.size(), y_.strides[a], x_.strides[a]);
        continue;
      }
      map_.append_table(axis.size(), y_.strides[a], begins.size());
      const auto first = static_cast<std::int64_t>(taps.size());
      for (const auto begin : axis.begin) begins.push_back(first + begin);
      for (std::size_t t = 0; t < axis.index.size(); ++t) {
        taps.push_back({axis.index[t] * x_.strides[a], axis.weight[t]});
      }
    }
    begins_ = copy_to_device(device, begins);
    taps_ = copy_to_device(device, taps);
  }

  std::size_t resident_bytes() const override { return begins_->size() + taps_->size(); }

  void run(const KernelArgs& args) override {
    if (map_.elements == 0) return;
    run_with(args, std::make_integer_sequence<int, AxisMap::kMostAxes + 1>());
  }

 private:
  static bool copies(const AxisTaps& axis) {
    if (axis.index.size() + 1 != axis.begin.size()) return false;
    for (std::size_t i = 0; i < axis.index.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      if (axis.begin[i] != index || axis.index[i] != index || axis.weight[i] != 1) return false;
    }
    return true;
  }

  template <int... kAxes>
  void run_with(const KernelArgs& args, std::integer_sequence<int, kAxes...>) const {
    void (*kernel)(Global<const float>, Global<float>, AxisMap, TapTables) = nullptr;
    ((map_.table_axes == kAxes ? void(kernel = &tap_sum_kernel<kAxes>) : void()), ...);
    launch(args.stream, "tap_sum", one_dimension(map_.elements), kernel,
           Global(args.in<float>(0), view_span_of(x_)),
           Global(args.out<float>(0), view_span_of(y_)), map_,
           TapTables{table<std::int64_t>(*begins_), table<WeightedTap>(*taps_)});
  }

  template <class T>
  static Global<const T> table(DeviceBuffer& buffer) {
    return {reinterpret_cast<const T*>(buffer.data()),
            static_cast<std::int64_t>(buffer.size() / sizeof(T))};
  }

  StridedView x_, y_;
  AxisMap map_;
  std::unique_ptr<DeviceBuffer> begins_, taps_;
};

/// The kernel of a gradient operator that gives its own taps.
template <class GradientOp>
class TapGradientKernel : public TapSumKernel {
 public:
  TapGradientKernel(const KernelQuery& query, Device& device)
      : TapSumKernel(query, device, query.as<GradientOp>().taps()) {}
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
