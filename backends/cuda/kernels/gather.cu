// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gather.h"

#include "backends/cuda/kernels/strided_copy.cuh"
#include "core/base/checked_math.h"
#include "core/base/exact_math.h"
#include "core/runtime/index_reader.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// A plain store of 8 bytes is whole on a GPU. The emulation's threads may be several of the
/// host's.
__device__ void report_fault(std::uint64_t* report, std::int64_t position, std::int64_t index) {
  if (report == nullptr) return;
#if defined(__CUDACC__)
  *report = IndexFault::word(position, index);
#else
  __atomic_store_n(report, IndexFault::word(position, index), __ATOMIC_RELAXED);
#endif
}

/// One unit of y per thread. g.inner counts units.
template <class Index, class Unit>
__global__ void gather_kernel(Global<const Unit> x, Global<const Index> indices, Global<Unit> y,
                              GatherGeometry g, std::uint64_t* report) {
  const auto units = g.outer * g.count * g.inner;
  for (auto i = global_thread(); i < units; i += all_threads()) {
    const std::int64_t row = i / g.inner;
    const std::int64_t position = row % g.count;
    const Index index = indices[position];
    if (!is_index(index, g.size)) report_fault(report, position, index);
    const std::int64_t source = row / g.count * g.size + clamp_index(index, g.size);
    const Unit value = x[source * g.inner + i % g.inner];
    y[i] = value;
  }
}

constexpr int kWarp = 32;
constexpr int kLaneColumns = 4;
constexpr std::int64_t kStrip = kWarp * kLaneColumns;

/// The columns of a lane: one is one inner index of one outer one.
struct Columns {
  std::int64_t dy[kLaneColumns], dx[kLaneColumns];  ///< their first elements
  float sums[kLaneColumns];
  int count;

  __device__ Columns(const GatherGeometry& g, std::int64_t first) : count(0) {
    for (int k = 0; k < kLaneColumns; ++k) {
      const std::int64_t column = first + k * kWarp;
      dy[k] = column / g.inner * g.count * g.inner + column % g.inner;
      dx[k] = column / g.inner * g.size * g.inner + column % g.inner;
      sums[k] = 0;
      if (column < g.outer * g.inner) ++count;
    }
  }
};

/// A warp owns one index q of dx and a strip of columns. It looks through the indices, 32 at a
/// time, for q, and adds those of dy in ascending order: nobody else writes to its sums. The first
/// warp reports.
template <class Index>
__global__ void gather_gradient_kernel(Global<const float> dy, Global<const Index> indices,
                                       Global<float> dx, GatherGeometry g, std::int64_t strips,
                                       std::uint64_t* report) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (auto w = global_thread() / kWarp; w < g.size * strips; w += all_threads() / kWarp) {
    const std::int64_t q = w / strips;
    Columns columns(g, w % strips * kStrip + lane);
    for (std::int64_t first = 0; first < g.count; first += kWarp) {
      bool found = false;
      if (first + lane < g.count) {
        const Index index = indices[first + lane];
        found = clamp_index(index, g.size) == q;
        if (w == 0 && !is_index(index, g.size)) report_fault(report, first + lane, index);
      }
      const auto lanes = __ballot_sync(~0U, found);
      if (lanes == 0) continue;
      for (int l = 0; l < kWarp; ++l) {
        if ((lanes >> l & 1U) == 0) continue;
        for (int k = 0; k < kLaneColumns; ++k) {
          if (k >= columns.count) continue;
          const float value = dy[columns.dy[k] + (first + l) * g.inner];
          columns.sums[k] += value;
        }
      }
    }
    for (int k = 0; k < kLaneColumns; ++k) {
      if (k < columns.count) dx[columns.dx[k] + q * g.inner] = exact::canonical(columns.sums[k]);
    }
  }
}

template <class Index>
Verdict accepts_indices(const KernelQuery& query) {
  if (query.inputs[1].spec.dtype != dtype_of<Index>) return Verdict::no("other index dtype");
  return accepts_dense(query);
}

template <class Index>
class GatherKernel : public Kernel, public IndexReader {
 public:
  GatherKernel(const KernelQuery& query, Device&)
      : IndexReader(query, query.inputs[0].spec.shape, query.as<Gather>().axis),
        element_size_(dtype_size(query.inputs[0].spec.dtype)) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_indices<Index>(query); }

  void run(const KernelArgs& args) override {
    const auto row_bytes = static_cast<std::uint64_t>(geometry().inner) * element_size_;
    if (row_bytes == 0 || geometry().outer * geometry().count == 0) return;
    const auto unit_size =
        widest_unit(row_bytes | address_of(args.inputs[0]) | address_of(args.outputs[0]));
    auto g = geometry();
    g.inner = static_cast<std::int64_t>(row_bytes / unit_size);
    visit_unit(unit_size, [&](auto unit) {
      using Unit = decltype(unit);
      const auto units = g.outer * g.count * g.inner;
      launch(args.stream, "gather", one_dimension(units), gather_kernel<Index, Unit>,
             Global(args.in<Unit>(0), g.outer * g.size * g.inner),
             Global(args.in<Index>(1), g.count), Global(args.out<Unit>(0), units), g, report());
    });
  }

 private:
  std::size_t element_size_;
};

template <class Index>
class GatherGradientKernel : public Kernel, public IndexReader {
 public:
  GatherGradientKernel(const KernelQuery& query, Device&)
      : IndexReader(query, query.outputs[0].spec.shape, query.as<GatherGradient>().axis) {}

  static Verdict accepts(const KernelQuery& query) { return accepts_indices<Index>(query); }

  void run(const KernelArgs& args) override {
    const auto& g = geometry();
    if (g.outer * g.size * g.inner == 0) return;
    const auto strips = ceil_div(g.outer * g.inner, kStrip);
    launch(args.stream, "gather_gradient", one_dimension(g.size * strips * kWarp),
           gather_gradient_kernel<Index>, Global(args.in<float>(0), g.outer * g.count * g.inner),
           Global(args.in<Index>(1), g.count),
           Global(args.out<float>(0), g.outer * g.size * g.inner), g, strips, report());
  }
};

}  // namespace

void add_gather_kernels(KernelList& list) {
  list.push_back(kernel_entry<GatherKernel<std::int32_t>>(Gather::kName, "i32"));
  list.push_back(kernel_entry<GatherKernel<std::int64_t>>(Gather::kName, "i64"));
  list.push_back(kernel_entry<GatherGradientKernel<std::int32_t>>(GatherGradient::kName, "i32"));
  list.push_back(kernel_entry<GatherGradientKernel<std::int64_t>>(GatherGradient::kName, "i64"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
