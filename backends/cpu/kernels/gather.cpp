// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/kernels.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"
#include "core/base/exact_math.h"

namespace triptych::cpu {
namespace {

constexpr std::int64_t kTaskElements = 16 * 1024;  // less is not worth a task

void check_constant_indices(const KernelQuery& query, std::int64_t size) {
  if (query.constants.size() < 2 || query.constants[1] == nullptr) return;
  check_indices(query.op.name(), *query.constants[1], size);
}

template <class Index>
class GatherKernel : public Kernel {
 public:
  GatherKernel(const KernelQuery& query, Device&)
      : geometry_(query.inputs[0].spec.shape, query.as<Gather>().axis, query.inputs[1].spec.shape),
        run_bytes_(geometry_.inner *
                   static_cast<std::int64_t>(dtype_size(query.inputs[0].spec.dtype))) {
    check_constant_indices(query, geometry_.size);
  }

  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[1].spec.dtype != dtype_of<Index>) return Verdict::no("other index dtype");
    return accepts_dense(query);
  }

  void run(const KernelArgs& args) override {
    if (run_bytes_ == 0) return;
    const auto* indices = args.in<Index>(1);
    const auto grain = std::max<std::int64_t>(kTaskElements / geometry_.inner, 1);
    parallel_for(
        geometry_.outer * geometry_.count, grain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const auto index = clamp_index(indices[row % geometry_.count], geometry_.size);
            const auto source = row / geometry_.count * geometry_.size + index;
            std::memcpy(args.outputs[0] + row * run_bytes_, args.inputs[0] + source * run_bytes_,
                        static_cast<std::size_t>(run_bytes_));
          }
        });
  }

 private:
  GatherGeometry geometry_;
  std::int64_t run_bytes_;
};

/// A task owns columns of dx: all indices of one outer index, kColumns inner ones.
template <class Index>
class GatherGradientKernel : public Kernel {
 public:
  GatherGradientKernel(const KernelQuery& query, Device&)
      : geometry_(query.outputs[0].spec.shape, query.as<GatherGradient>().axis,
                  query.inputs[1].spec.shape) {
    check_constant_indices(query, geometry_.size);
  }

  static Verdict accepts(const KernelQuery& query) {
    if (query.inputs[1].spec.dtype != dtype_of<Index>) return Verdict::no("other index dtype");
    return accepts_dense(query);
  }

  void run(const KernelArgs& args) override {
    const auto blocks = ceil_div(geometry_.inner, kColumns);
    const auto rows = std::max<std::int64_t>(geometry_.size + geometry_.count, 1);
    const auto grain = std::max<std::int64_t>(kTaskElements / (rows * kColumns), 1);
    parallel_for(geometry_.outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        add_columns(args, task / blocks, task % blocks * kColumns);
      }
    });
  }

 private:
  static constexpr std::int64_t kColumns = 64;

  void add_columns(const KernelArgs& args, std::int64_t outer, std::int64_t first) const {
    const auto columns = std::min(kColumns, geometry_.inner - first);
    const float* dy = args.in<float>(0) + outer * geometry_.count * geometry_.inner + first;
    float* dx = args.out<float>(0) + outer * geometry_.size * geometry_.inner + first;
    for (std::int64_t q = 0; q < geometry_.size; ++q) {
      std::fill_n(dx + q * geometry_.inner, columns, 0.0F);
    }
    for (std::int64_t j = 0; j < geometry_.count; ++j) {
      const auto q = clamp_index(args.in<Index>(1)[j], geometry_.size);
      const float* source = dy + j * geometry_.inner;
      float* target = dx + q * geometry_.inner;
      for (std::int64_t i = 0; i < columns; ++i) {
        target[i] = exact::canonical(target[i] + source[i]);
      }
    }
  }

  GatherGeometry geometry_;
};

}  // namespace

void add_gather_kernels(KernelList& list) {
  list.push_back(kernel_entry<GatherKernel<std::int32_t>>("Gather", "i32"));
  list.push_back(kernel_entry<GatherKernel<std::int64_t>>("Gather", "i64"));
  list.push_back(kernel_entry<GatherGradientKernel<std::int32_t>>("GatherGradient", "i32"));
  list.push_back(kernel_entry<GatherGradientKernel<std::int64_t>>("GatherGradient", "i64"));
}

}  // namespace triptych::cpu
