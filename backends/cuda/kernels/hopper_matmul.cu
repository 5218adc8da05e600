// MatMul as Hopper (compute capability 9.0) wants it: the copy engine fills a ring of tiles while
// the tensor cores read them where they lie. A block of three warpgroups owns one tile of 128 x 256
// elements of y after another: the first warpgroup asks for copies and keeps few registers, the two
// others own 64 rows each and multiply. Who waits for whom is a pair of barriers for each stage of
// the ring: `full` when its bytes have come, `empty` when both have read it.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/bf16_matrices.h"
#include "backends/cuda/kernels/hopper.cuh"
#include "backends/cuda/kernels/tensor_core_gemm.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

struct HopperTiles {
  static constexpr int kRows = 128, kColumns = 256, kDepth = 64, kStages = 4;
  static constexpr int kConsumers = 2, kThreads = (1 + kConsumers) * 128;
  static constexpr int kStageBytes = (kRows + kColumns) * kDepth * 2;
  Swizzled<kStages * kRows> a;
  Swizzled<kStages * kColumns> b;
  PhaseBarrier full[kStages], empty[kStages];
};

/// a [m, k] and b [n, k], each a stack of all matrices of the batch.
struct HopperProblem {
  GemmSizes sizes;
  TensorMap left, right;
  Global<float> y;
  Global<const std::int64_t> offsets;  ///< elements of a, then of b, by batch entry
};

/// A tile of y of a batch entry, and where its operands' rows start.
struct HopperTile {
  std::int64_t batch, m, n;
  int left_row, right_row;
};

/// Tile `number` of all.
__device__ HopperTile hopper_tile(const HopperProblem& problem, std::int64_t number) {
  const auto& sizes = problem.sizes;
  const std::int64_t down = (sizes.m + HopperTiles::kRows - 1) / HopperTiles::kRows;
  const std::int64_t across = (sizes.n + HopperTiles::kColumns - 1) / HopperTiles::kColumns;
  const std::int64_t batch = number / (down * across);
  const TileNumber tile = tile_number(number % (down * across), down, across);
  const std::int64_t left = problem.offsets[batch];
  const std::int64_t right = problem.offsets[sizes.batch + batch];
  const std::int64_t m = tile.m * HopperTiles::kRows, n = tile.n * HopperTiles::kColumns;
  return {batch, m, n, static_cast<int>(left / sizes.k + m), static_cast<int>(right / sizes.k + n)};
}

/// The stage of the ring that comes next, and the parity of its phase.
struct RingPlace {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    stage = (stage + 1) % HopperTiles::kStages;
    if (stage == 0) parity ^= 1U;
  }
};

/// One thread: asks for every stage of every tile of the block as soon as it is empty.
__device__ void produce(HopperTiles& tiles, const HopperProblem& problem, std::int64_t count) {
  const int depth = static_cast<int>(problem.sizes.k);
  RingPlace place;
  for (std::int64_t number = blockIdx.x; number < count; number += gridDim.x) {
    const HopperTile tile = hopper_tile(problem, number);
    for (int k = 0; k < depth; k += HopperTiles::kDepth, place.advance()) {
      PhaseBarrier& full = tiles.full[place.stage];
      // The phase before the first counts as over: all stages are empty.
      tiles.empty[place.stage].wait(place.parity ^ 1U);
      full.expect(HopperTiles::kStageBytes);
      load_box(tiles.a, place.stage * HopperTiles::kRows, problem.left, k, tile.left_row, full);
      load_box(tiles.b, place.stage * HopperTiles::kColumns, problem.right, k, tile.right_row,
               full);
    }
  }
}

/// A warpgroup's 64 rows of a tile of y.
__device__ void store_sums(const HopperProblem& problem, const HopperTile& tile, int consumer,
                           const WarpgroupSums (&sums)[2]) {
  const MatrixOutput y = {problem.y, problem.sizes.m, problem.sizes.n};
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const std::int64_t m = tile.m + consumer * WarpgroupSums::kRows + thread / 32 * 16 + lane / 4;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
#pragma unroll
    for (int j = 0; j < WarpgroupSums::kColumns / 8; ++j) {
      const std::int64_t n = tile.n + part * WarpgroupSums::kColumns + 8 * j + lane % 4 * 2;
      const FragmentC& c = sums[part].columns[j];
      y.store_inside(tile.batch, m, n, c.sums[0], c.sums[1]);
      y.store_inside(tile.batch, m + 8, n, c.sums[2], c.sums[3]);
    }
  }
}

__device__ void consume(HopperTiles& tiles, const HopperProblem& problem, std::int64_t count,
                        int consumer) {
  constexpr int kRows = HopperTiles::kRows, kColumns = HopperTiles::kColumns;
  const int depth = static_cast<int>(problem.sizes.k);
  RingPlace place;
  for (std::int64_t number = blockIdx.x; number < count; number += gridDim.x) {
    WarpgroupSums sums[2];
    int before = -1;  // the stage whose products may still be under way
    for (int k = 0; k < depth; k += HopperTiles::kDepth, place.advance()) {
      tiles.full[place.stage].wait(place.parity);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        multiply_tiles(sums[part], tiles.a, place.stage * kRows + consumer * WarpgroupSums::kRows,
                       tiles.b, place.stage * kColumns + part * WarpgroupSums::kColumns);
      }
      wait_products<2>();  // but those just started
      if (before >= 0) tiles.empty[before].arrive_warpgroup();
      before = place.stage;
    }
    wait_products<0>();
    if (before >= 0) tiles.empty[before].arrive_warpgroup();
    store_sums(problem, hopper_tile(problem, number), consumer, sums);
  }
}

/// Grid: as many blocks as the GPU runs at once; tile `count` and those behind are not there.
__global__ void __launch_bounds__(384, 1)
    hopper_gemm_kernel(const __grid_constant__ HopperProblem problem, std::int64_t count) {
  auto& tiles = shared<HopperTiles>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < HopperTiles::kStages; ++stage) {
      tiles.full[stage].begin(1);
      tiles.empty[stage].begin_warpgroups(HopperTiles::kConsumers);
    }
    publish_barriers();
  }
  __syncthreads();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  // 40 + 2 * 232 registers, times 128 threads: as many as there are.
  if (warpgroup == 0) {
    leave_registers<40>();
    if (threadIdx.x == 0) produce(tiles, problem, count);
  } else {
    take_registers<232>();
    consume(tiles, problem, count, warpgroup - 1);
  }
}

class HopperMatMul : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (!query.dense()) return Verdict::no("needs dense operands");
    const auto sizes = RoundedMatrices::sizes_of(query);
    if (auto verdict = accepts_tensor_core(sizes, query.contract); !verdict.accepted) {
      return verdict;
    }
    if (sizes.k == 0 || sizes.m < HopperTiles::kRows / 2 || sizes.n < HopperTiles::kColumns / 2) {
      return Verdict::no("needs at least 64 rows and 128 columns: half a tile");
    }
    if (splits_for(sizes).count > 1) return Verdict::no("does not divide a long k among blocks");
    return Verdict::yes();
  }

  HopperMatMul(const KernelQuery& query, Device& device) : matrices_(query, device) {}

  std::size_t resident_bytes() const override { return matrices_.resident_bytes(); }
  std::size_t scratch_bytes() const override { return matrices_.bytes(); }

  void run(const KernelArgs& args) override {
    constexpr std::int64_t kMostBlocks = 132;  // multiprocessors of an H100 or H200
    const auto& sizes = matrices_.sizes();
    matrices_.round(args);
    const auto* right = args.scratch + matrices_.right_start();
    const HopperProblem problem = {
        sizes,
        make_tensor_map(reinterpret_cast<const BFloat16*>(args.scratch), matrices_.rows(0), sizes.k,
                        HopperTiles::kRows),
        make_tensor_map(reinterpret_cast<const BFloat16*>(right), matrices_.rows(1), sizes.k,
                        HopperTiles::kColumns),
        {args.out<float>(0), sizes.batch * sizes.m * sizes.n},
        matrices_.offsets()};
    const auto count = sizes.batch * ceil_div(sizes.m, HopperTiles::kRows) *
                       ceil_div(sizes.n, HopperTiles::kColumns);
    launch(args.stream, "hopper",
           {{static_cast<unsigned>(std::min(count, kMostBlocks))},
            {HopperTiles::kThreads},
            sizeof(HopperTiles)},
           instance<hopper_gemm_kernel>, problem, count);
  }

 private:
  RoundedMatrices matrices_;
};

}  // namespace

KernelEntry hopper_matmul() { return kernel_entry<HopperMatMul>(MatMul::kName, "hopper"); }

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
