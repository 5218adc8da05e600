// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/grain.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/base/exact_math.h"
#include "core/runtime/index_reader.h"

namespace triptych::cpu {
namespace {

/// Index at `position` of the indices, counted from the front. One out of range is reported.
std::int64_t counted(std::int64_t index, std::int64_t position, std::int64_t size,
                     std::uint64_t* report) {
  if (!is_index(index, size) && report != nullptr) {
    __atomic_store_n(report, IndexFault::word(position, index), __ATOMIC_RELAXED);
  }
  return clamp_index(index, size);
}

template <class Index>
class GatherKernel : public Kernel, public IndexReader {
 public:
  GatherKernel(const KernelQuery& query, Device&)
      : IndexReader(query, query.inputs[0].spec.shape, query.as<Gather>().axis),
        run_bytes_(geometry().inner *
                   static_cast<std::int64_t>(dtype_size(query.inputs[0].spec.dtype))) {}

  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[1].spec.dtype != dtype_of<Index>) return Verdict::no("other index dtype");
    return accepts_dense(query);
  }

  void run(const KernelArgs& args) override {
    if (run_bytes_ == 0) return;
    const auto* indices = args.in<Index>(1);
    const auto grain = grain_of(geometry().inner);
    parallel_for(
        geometry().outer * geometry().count, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const auto position = row % geometry().count;
            const auto index = counted(indices[position], position, geometry().size, report());
            const auto source = row / geometry().count * geometry().size + index;
            std::memcpy(args.outputs[0] + row * run_bytes_, args.inputs[0] + source * run_bytes_,
                        static_cast<std::size_t>(run_bytes_));
          }
        });
  }

 private:
  std::int64_t run_bytes_;
};

/// A task owns columns of dx: all indices of one outer index, kColumns inner ones.
template <class Index>
class GatherGradientKernel : public Kernel, public IndexReader {
 public:
  GatherGradientKernel(const KernelQuery& query, Device&)
      : IndexReader(query, query.outputs[0].spec.shape, query.as<GatherGradient>().axis) {}

  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[1].spec.dtype != dtype_of<Index>) return Verdict::no("other index dtype");
    return accepts_dense(query);
  }

  void run(const KernelArgs& args) override {
    const auto blocks = ceil_div(geometry().inner, kColumns);
    const auto rows = std::max<std::int64_t>(geometry().size + geometry().count, 1);
    const auto grain = grain_of(rows * kColumns);
    parallel_for(geometry().outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        add_columns(args, task / blocks, task % blocks * kColumns);
      }
    });
  }

 private:
  static constexpr std::int64_t kColumns = 64;

  void add_columns(const KernelArgs& args, std::int64_t outer, std::int64_t first) const {
    const auto columns = std::min(kColumns, geometry().inner - first);
    const float* dy = args.in<float>(0) + outer * geometry().count * geometry().inner + first;
    float* dx = args.out<float>(0) + outer * geometry().size * geometry().inner + first;
    for (std::int64_t q = 0; q < geometry().size; ++q) {
      std::fill_n(dx + q * geometry().inner, columns, 0.0F);
    }
    for (std::int64_t j = 0; j < geometry().count; ++j) {
      const auto q = counted(args.in<Index>(1)[j], j, geometry().size, report());
      const float* source = dy + j * geometry().inner;
      float* target = dx + q * geometry().inner;
      for (std::int64_t i = 0; i < columns; ++i) {
        target[i] = exact::canonical(target[i] + source[i]);
      }
    }
  }
};

}  // namespace

void add_gather_kernels(KernelList& list) {
  list.push_back(kernel_entry<GatherKernel<std::int32_t>>("Gather", "i32"));
  list.push_back(kernel_entry<GatherKernel<std::int64_t>>("Gather", "i64"));
  list.push_back(kernel_entry<GatherGradientKernel<std::int32_t>>("GatherGradient", "i32"));
  list.push_back(kernel_entry<GatherGradientKernel<std::int64_t>>("GatherGradient", "i64"));
}

}  // namespace triptych::cpu
