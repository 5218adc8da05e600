// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/reduction.h"
#include "core/base/checked_math.h"
#include "core/ops/axes.h"
#include "core/runtime/kernel_families.h"

namespace triptych::cpu {
namespace {

/// x as kept x reduced x inner. Each of the first two may be several separate axes, and `inner` is
/// the size of the last axes when they are preserved (otherwise 1).
struct ReduceLayout {
  StridedIndex kept, reduced;
  std::int64_t inner = 1;

  ReduceLayout(const Reduce& op, const Operand& operand) {
    const auto& x = operand.spec.shape;
    struct Group {
      std::int64_t size, stride;
      bool reduced;
    };
    const auto flags = ReduceGeometry::of(op, x).reduced;
    auto strides = x.strides();
    if (!strides.empty()) strides[0] = operand.outer_stride;
    std::vector<Group> groups;
    for (std::size_t axis = 0; axis < flags.size(); ++axis) {
      const auto size = x.dims()[axis];
      if (size == 1) continue;
      if (!groups.empty() && groups.back().reduced == flags[axis]) {
        groups.back() = {groups.back().size * size, strides[axis], flags[axis]};
      } else {
        groups.push_back({size, strides[axis], flags[axis]});
      }
    }
    if (!groups.empty() && !groups.back().reduced) {
      inner = groups.back().size;
      groups.pop_back();
    }
    for (const auto& group : groups) {
      (group.reduced ? reduced : kept).append(group.size, group.stride);
    }
    has_lines = groups.size() == 2 && groups.back().reduced && inner == 1;
  }

  bool has_lines = false;  ///< x is a matrix whose rows are reduced
};

/// Images may lie apart where they are summed and their channels are not: no axis is then merged
/// with the first.
Verdict accepts_layout(const KernelQuery& query) {
  const auto& x = query.inputs[0];
  if (query.dense()) return Verdict::yes();
  if (!query.outputs[0].is_dense()) return Verdict::no("needs a dense output");
  const auto flags = ReduceGeometry::of(query.as<Reduce>(), x.spec.shape).reduced;
  const bool is_apart = flags.size() > 1 && flags[0] && !flags[1] && x.spec.shape[1] > 1;
  return is_apart ? Verdict::yes() : Verdict::no("needs dense operands");
}

/// A block of a sequence that lies in contiguous segments: in place, or gathered into `buffer`.
template <class T>
const T* contiguous_block(const T* x, const StridedIndex& sequence, std::int64_t first,
                          std::int64_t count, T* buffer) {
  const auto segment = sequence.last();
  const auto within = first % segment;
  if (within + count <= segment) return x + sequence.offset(first);
  for (std::int64_t i = 0; i < count;) {
    const auto size = std::min(count - i, segment - (first + i) % segment);
    std::copy_n(x + sequence.offset(first + i), size, buffer + i);
    i += size;
  }
  return buffer;
}

template <class Combine>
class ReduceKernel : public Kernel {
  using T = typename Combine::Type;

 public:
  explicit ReduceKernel(const KernelQuery& query)
      : layout_(query.as<Reduce>(), query.inputs[0]),
        blocks_(reduction_blocks(layout_.reduced.count())),
        chunks_(ceil_div(layout_.inner, kColumns)),
        mean_(query.as<Reduce>().kind == ReduceKind::Mean) {}

  std::size_t scratch_bytes() const override {
    return blocks_ == 1 ? 0 : static_cast<std::size_t>(outputs() * blocks_) * sizeof(T);
  }

  void run(const KernelArgs& args) override {
    const T* x = args.in<T>(0);
    T* y = args.out<T>(0);
    if (layout_.has_lines && are_short(outputs(), layout_.reduced.count())) {
      fold_short_lines(x, y);
      return finish_all(y, y);
    }
    T* partial = blocks_ == 1 ? y : reinterpret_cast<T*>(args.scratch);
    const auto work =
        std::min(layout_.reduced.count(), kReductionBlock) * std::min(layout_.inner, kColumns);
    parallel_for(layout_.kept.count() * blocks_ * chunks_, grain_of(work),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto item = begin; item < end; ++item) fold_item(x, partial, item);
                 });
    finish_all(partial, y);
  }

 private:
  void finish_all(T* partial, T* y) const {
    if (blocks_ == 1 && !mean_) return;
    parallel_for(outputs(), grain_of(blocks_), [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) y[i] = finish(partial, i);
    });
  }

  void fold_short_lines(const T* x, T* y) const {
    const auto count = layout_.reduced.count(), at_once = short_lines_at_once(count);
    parallel_for(outputs(), grain_of(count), [&](auto begin, auto end) {
      T buffer[kShortBlock];
      const T* columns = buffer;
      for (auto line = begin; line < end; line += at_once) {
        const auto width = std::min(at_once, end - line);
        transpose_lines(x + line * count, count, width, buffer);
        T* target = y + line;
        simd([=] {
          fold_columns<Combine>(
              count, width, [=](auto i, auto w) { return columns[i * width + w]; }, target);
        });
      }
    });
  }

  static void transpose_lines(const T* x, std::int64_t count, std::int64_t width, T* columns) {
    if constexpr (std::is_same_v<T, float>) {
      transpose_matrix({x, count, width, count}, columns, width, Rounding::None);
    } else {
      for (std::int64_t w = 0; w < width; ++w) {
        for (std::int64_t i = 0; i < count; ++i) columns[i * width + w] = x[w * count + i];
      }
    }
  }

  std::int64_t outputs() const { return layout_.kept.count() * layout_.inner; }

  /// Item (kept, block, chunk of columns) into partial[kept][block][column].
  void fold_item(const T* x, T* partial, std::int64_t item) const {
    const auto chunk = item % chunks_, slot = item / chunks_;
    const auto first = slot % blocks_ * kReductionBlock;
    const auto count = std::min(kReductionBlock, layout_.reduced.count() - first);
    const auto column = chunk * kColumns;
    const T* source = x + layout_.kept.offset(slot / blocks_) + column;
    T* target = partial + slot * layout_.inner + column;
    if (layout_.inner == 1) {
      T buffer[kReductionBlock];
      const T* block = contiguous_block(source, layout_.reduced, first, count, buffer);
      simd([=] {
        *target = fold_block(
            count, [=](auto i) { return block[i]; }, Combine());
      });
    } else {
      const auto width = std::min(kColumns, layout_.inner - column);
      const auto& sequence = layout_.reduced;
      std::int64_t offsets[kReductionBlock];
      for (std::int64_t i = 0; i < count; ++i) offsets[i] = sequence.offset(first + i);
      const auto* at = offsets;
      simd([=] {
        fold_columns<Combine>(
            count, width, [=](auto i, auto w) { return source[at[i] + w]; }, target);
      });
    }
  }

  T finish(T* partial, std::int64_t output) const {
    T* column = partial + output / layout_.inner * blocks_ * layout_.inner + output % layout_.inner;
    const T value = fold_tree(column, blocks_, Combine(), layout_.inner);
    if constexpr (std::is_same_v<T, float>) {
      if (mean_) return one_nan(value / static_cast<float>(layout_.reduced.count()));
    }
    return value;
  }

  ReduceLayout layout_;
  std::int64_t blocks_, chunks_;
  bool mean_;
};

/// Compares values stored in fewer bits as floats.
template <class T>
class ArgMaxKernel : public Kernel {
  using C = ComputeType<T>;

 public:
  explicit ArgMaxKernel(const KernelQuery& query) : last_(query.as<ArgMax>().select_last_index) {
    const auto& x = query.inputs[0].spec.shape;
    lines_ = AxisLines::along(x, normalize_axis(query.as<ArgMax>().axis, x.rank()));
  }

  void run(const KernelArgs& args) override {
    const auto chunks = ceil_div(lines_.inner, kColumns);
    const auto work = lines_.count * std::min(lines_.inner, kColumns);
    parallel_for(lines_.outer * chunks, grain_of(work), [&](std::int64_t begin, std::int64_t end) {
      for (auto item = begin; item < end; ++item) {
        const auto outer = item / chunks, column = item % chunks * kColumns;
        find(args.in<T>(0) + outer * lines_.count * lines_.inner + column,
             args.out<std::int64_t>(0) + outer * lines_.inner + column,
             std::min(kColumns, lines_.inner - column));
      }
    });
  }

 private:
  void find(const T* x, std::int64_t* y, std::int64_t width) const {
    C best[kColumns];
    for (std::int64_t w = 0; w < width; ++w) {
      best[w] = static_cast<C>(x[w]);
      y[w] = 0;
    }
    for (std::int64_t i = 1; i < lines_.count; ++i) {
      for (std::int64_t w = 0; w < width; ++w) {
        const auto value = static_cast<C>(x[i * lines_.inner + w]);
        const bool better = exceeds(value, best[w]) || (last_ && ties(value, best[w]));
        best[w] = better ? value : best[w];
        y[w] = better ? i : y[w];
      }
    }
  }

  bool last_;
  AxisLines lines_;
};

}  // namespace

void add_reduce_kernels(KernelList& list) {
  add_reductions<ReduceKernel, ArgMaxKernel>(list, &accepts_layout, &accepts_dense);
}

}  // namespace triptych::cpu
