// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include "backends/cuda/kernels/device_table.h"
#include "backends/cuda/kernels/vectorised_gemm.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// a [m, k] and b [k, n], each perhaps transposed in memory. y is dense.
template <bool kRound, bool kTransposeA, bool kTransposeB>
struct MatMulProblem {
  using Value = float;
  static constexpr bool kRowsAlongK = !kTransposeA, kColumnsAlongN = !kTransposeB;

  GemmSizes sizes;
  Global<const float> left, right;
  Global<float> y;
  Global<const std::int64_t> offsets;  ///< of a, then of b, by batch entry

  struct Entry {
    GemmSizes sizes;
    Global<const float> left, right;
    Global<float> y;

    __device__ std::int64_t at_a(std::int64_t m, std::int64_t k) const {
      return kTransposeA ? k * sizes.m + m : m * sizes.k + k;
    }
    __device__ std::int64_t at_b(std::int64_t k, std::int64_t n) const {
      return kTransposeB ? n * sizes.k + k : k * sizes.n + n;
    }
    __device__ float a(std::int64_t m, std::int64_t k) const {
      return operand<kRound>(left[at_a(m, k)]);
    }
    __device__ float b(std::int64_t k, std::int64_t n) const {
      return operand<kRound>(right[at_b(k, n)]);
    }
    __device__ void store(std::int64_t m, std::int64_t n, float sum) const {
      y[m * sizes.n + n] = sum;
    }
    __device__ Four a4(std::int64_t m, std::int64_t k) const {
      return rounded(left.template load<4>(at_a(m, k)));
    }
    __device__ Four b4(std::int64_t k, std::int64_t n) const {
      return rounded(right.template load<4>(at_b(k, n)));
    }
    __device__ void store4(std::int64_t m, std::int64_t n, const Four& sums) const {
      y.template store<4>(m * sizes.n + n, sums);
    }
    __device__ static Four rounded(const Four& values) {
      Four result;
#pragma unroll
      for (int i = 0; i < 4; ++i) result[i] = operand<kRound>(values[i]);
      return result;
    }
  };
  __device__ Entry entry(std::int64_t batch) const {
    const std::int64_t of_left = offsets[batch], of_right = offsets[sizes.batch + batch];
    return {sizes, left.from(of_left), right.from(of_right), y.from(batch * sizes.m * sizes.n)};
  }
};

// The ladder: from one thread per element that reads everything from global memory, to tiles in
// shared memory and registers (gemm.cuh). Each computes the same chains. Loops over k are not
// unrolled: unrolled ones would read four elements of shared memory at once, and the emulation
// would no longer count like a profiler.

/// One thread per element, neighbouring threads in neighbouring rows: each lane reads another row
/// of a, hence another sector.
template <class Problem>
__global__ void matmul_naive_kernel(Problem problem) {
  const std::int64_t m = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t n = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  if (m >= problem.sizes.m || n >= problem.sizes.n) return;
  const auto entry = problem.entry(blockIdx.z);
  float sum = 0;
#pragma unroll 1
  for (std::int64_t k = 0; k < problem.sizes.k; ++k) {
    sum = std::fma(entry.a(m, k), entry.b(k, n), sum);
  }
  entry.store(m, n, canonical(sum));
}

/// The same with neighbouring threads in neighbouring columns: a warp reads b and writes y in whole
/// sectors, and one element of a for all lanes.
template <class Problem>
__global__ void matmul_coalesced_kernel(Problem problem) {
  const std::int64_t m = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const std::int64_t n = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (m >= problem.sizes.m || n >= problem.sizes.n) return;
  const auto entry = problem.entry(blockIdx.z);
  float sum = 0;
#pragma unroll 1
  for (std::int64_t k = 0; k < problem.sizes.k; ++k) {
    sum = std::fma(entry.a(m, k), entry.b(k, n), sum);
  }
  entry.store(m, n, canonical(sum));
}

inline constexpr int kLadderTile = 32;

/// Where a ladder's tile of b lies: as in memory, or transposed, rows kPitch elements apart.
template <bool kTransposed, int kPitch>
struct LadderTile {
  Shared<float, kLadderTile, kLadderTile> a;  // [m, k]
  Shared<float, kLadderTile, kPitch> b;       // [k, n], or [n, k]

  __device__ void set_b(int k, int n, float value) {
    if constexpr (kTransposed) {
      b(n, k) = value;
    } else {
      b(k, n) = value;
    }
  }
  __device__ float get_b(int k, int n) {
    if constexpr (kTransposed) return b(n, k);
    return b(k, n);
  }
};

/// One thread per element. A block of 32 x 32 shares tiles of a and b in shared memory, so that
/// each element of them is read 32 times less often from global memory.
template <class Tile, class Problem>
__global__ void __launch_bounds__(1024) matmul_tiled_kernel(Problem problem) {
  auto& tile = shared<Tile>();
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const std::int64_t m = std::int64_t{blockIdx.x} * kLadderTile + row;
  const std::int64_t n = std::int64_t{blockIdx.y} * kLadderTile + column;
  const auto& sizes = problem.sizes;
  const auto entry = problem.entry(blockIdx.z);
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < sizes.k; k0 += kLadderTile) {
    const bool a_inside = m < sizes.m && k0 + column < sizes.k;
    tile.a(row, column) = a_inside ? entry.a(m, k0 + column) : 0.0F;
    const bool b_inside = n < sizes.n && k0 + row < sizes.k;
    tile.set_b(row, column, b_inside ? entry.b(k0 + row, n) : 0.0F);
    __syncthreads();
    const int depth = sizes.k - k0 < kLadderTile ? static_cast<int>(sizes.k - k0) : kLadderTile;
#pragma unroll 1
    for (int k = 0; k < depth; ++k) {
      const float a = tile.a(row, k);
      sum = std::fma(a, tile.get_b(k, column), sum);
    }
    __syncthreads();
  }
  if (m < sizes.m && n < sizes.n) entry.store(m, n, canonical(sum));
}

/// Grid and block of a step that has one thread per element, rows on the grid's first axis.
LaunchShape element_shape(const GemmSizes& sizes, std::size_t shared_bytes) {
  const auto tiles = [](std::int64_t count) {
    return static_cast<unsigned>((count + kLadderTile - 1) / kLadderTile);
  };
  return {{tiles(sizes.m), tiles(sizes.n), static_cast<unsigned>(sizes.batch)},
          {kLadderTile, kLadderTile},
          shared_bytes};
}

/// The steps as launchable kernels.
struct Naive {
  static constexpr const char* kName = "naive";
  template <class Problem>
  static void run(Stream* stream, const Problem& problem) {
    launch(stream, kName, element_shape(problem.sizes, 0), kInstance<matmul_naive_kernel<Problem>>,
           problem);
  }
};
struct Coalesced {
  static constexpr const char* kName = "coalesced";
  template <class Problem>
  static void run(Stream* stream, const Problem& problem) {
    launch(stream, kName, element_shape(problem.sizes, 0),
           kInstance<matmul_coalesced_kernel<Problem>>, problem);
  }
};
template <class Tile>
void run_tiled(Stream* stream, const char* name, const auto& problem) {
  launch(stream, name, element_shape(problem.sizes, sizeof(Tile)),
         kInstance<matmul_tiled_kernel<Tile, std::remove_cvref_t<decltype(problem)>>>, problem);
}
struct Tiled {
  static constexpr const char* kName = "tiled";
  static void run(Stream* stream, const auto& problem) {
    run_tiled<LadderTile<false, kLadderTile>>(stream, kName, problem);
  }
};
/// A lesson in bank conflicts: the lanes of a warp read one column of the tile, all from one bank.
struct TiledTransposed {
  static constexpr const char* kName = "tiled-transposed";
  static void run(Stream* stream, const auto& problem) {
    run_tiled<LadderTile<true, kLadderTile>>(stream, kName, problem);
  }
};
/// Its cure: one element more per row, and the column lies in 32 banks.
struct TiledPadded {
  static constexpr const char* kName = "tiled-padded";
  static void run(Stream* stream, const auto& problem) {
    run_tiled<LadderTile<true, kLadderTile + 1>>(stream, kName, problem);
  }
};
struct RegisterTiled {
  static constexpr const char* kName = "register-tiled";
  static void run(Stream* stream, const auto& problem) { launch_gemm(stream, kName, problem); }
};
struct Vectorised {
  static constexpr const char* kName = "vectorised";
  static void run(Stream* stream, const auto& problem) {
    launch_vectorised_gemm(stream, kName, problem);
  }
  static Verdict accepts(const GemmSizes& sizes, const MatMul& op) {
    return accepts_vectorised(sizes, !op.transpose_a);
  }
};

template <class Step>
class MatMulKernel : public Kernel {
 public:
  MatMulKernel(const KernelQuery& query, Device& device)
      : op_(query.as<MatMul>()),
        geometry_(MatMulGeometry::of(op_, query.inputs[0].spec, query.inputs[1].spec)),
        a_elements_(query.inputs[0].spec.shape.elements()),
        b_elements_(query.inputs[1].spec.shape.elements()),
        round_(rounds_operands(query.contract)),
        offsets_(copy_to_device(device, both(geometry_.batch_a, geometry_.batch_b))) {}

  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    const auto& op = query.as<MatMul>();
    const auto g = MatMulGeometry::of(op, query.inputs[0].spec, query.inputs[1].spec);
    const GemmSizes sizes = {static_cast<std::int64_t>(g.batch_a.size()), g.m, g.n, g.k};
    if constexpr (requires { Step::accepts(sizes, op); }) {
      if (auto verdict = Step::accepts(sizes, op); !verdict.accepted) return verdict;
    }
    return accepts_gemm(sizes, query.contract);
  }

  std::size_t resident_bytes() const override { return offsets_->size(); }

  void run(const KernelArgs& args) override {
    round_ ? run_rounded<true>(args) : run_rounded<false>(args);
  }

 private:
  static std::vector<std::int64_t> both(std::vector<std::int64_t> a,
                                        const std::vector<std::int64_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  std::size_t batch() const { return geometry_.batch_a.size(); }

  template <bool kRound>
  void run_rounded(const KernelArgs& args) const {
    if (op_.transpose_a) {
      op_.transpose_b ? run_as<kRound, true, true>(args) : run_as<kRound, true, false>(args);
    } else {
      op_.transpose_b ? run_as<kRound, false, true>(args) : run_as<kRound, false, false>(args);
    }
  }

  template <bool kRound, bool kTransposeA, bool kTransposeB>
  void run_as(const KernelArgs& args) const {
    const auto& g = geometry_;
    const auto entries = static_cast<std::int64_t>(batch());
    const MatMulProblem<kRound, kTransposeA, kTransposeB> problem = {
        {entries, g.m, g.n, g.k},
        {args.in<float>(0), a_elements_},
        {args.in<float>(1), b_elements_},
        {args.out<float>(0), entries * g.m * g.n},
        {reinterpret_cast<const std::int64_t*>(offsets_->data()), 2 * entries}};
    if (entries > 0 && g.m > 0 && g.n > 0) Step::run(args.stream, problem);
  }

  MatMul op_;
  MatMulGeometry geometry_;
  std::int64_t a_elements_, b_elements_;
  bool round_;
  std::unique_ptr<DeviceBuffer> offsets_;
};

}  // namespace

void add_matmul_kernels(KernelList& list) {
  const auto add = [&]<class Step>(Step, KernelRole role = KernelRole::Own) {
    list.push_back(kernel_entry<MatMulKernel<Step>>(MatMul::kName, Step::kName, role));
  };
  add(Vectorised());
  add(RegisterTiled());
  add(TiledPadded(), KernelRole::Lesson);
  add(TiledTransposed(), KernelRole::Lesson);
  add(Tiled(), KernelRole::Lesson);
  add(Coalesced(), KernelRole::Lesson);
  add(Naive(), KernelRole::Lesson);
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
