// MatMul by the products of hopper_gemm.cuh.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/bf16_matrices.h"
#include "backends/cuda/kernels/hopper_gemm.cuh"
#include "backends/cuda/kernels/tensor_core_kernels.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// a [m, k] and b [n, k], each a stack of all matrices of the batch.
struct HopperMatMulProblem {
  using Tiles = HopperTiles;
  static constexpr bool kTurned = false, kDepthOutside = false;

  GemmSizes sizes;
  TensorMap left, right;
  Global<float> y;
  Global<const std::int64_t> offsets;  ///< elements of a, then of b, by batch entry

  /// A tile of y of a batch entry, and where its operands' rows start.
  struct Tile {
    std::int64_t batch, m, n;
    int left_row, right_row;
  };
  __device__ Tile tile(std::int64_t number) const {
    const std::int64_t down = (sizes.m + HopperTiles::kRows - 1) / HopperTiles::kRows;
    const std::int64_t across = (sizes.n + HopperTiles::kColumns - 1) / HopperTiles::kColumns;
    const std::int64_t batch = number / (down * across);
    const TileNumber at = tile_number(number % (down * across), down, across);
    const std::int64_t a = offsets[batch], b = offsets[sizes.batch + batch];
    const std::int64_t m = at.m * HopperTiles::kRows, n = at.n * HopperTiles::kColumns;
    return {batch, m, n, static_cast<int>(a / sizes.k + m), static_cast<int>(b / sizes.k + n)};
  }
  __device__ int steps() const {
    return static_cast<int>((sizes.k + HopperTiles::kDepth - 1) / HopperTiles::kDepth);
  }
  __device__ void load(HopperTiles& tiles, int stage, const Tile& tile, int step,
                       PhaseBarrier& full) const {
    const int k = step * HopperTiles::kDepth;
    load_box(tiles.a, stage * HopperTiles::kRows, left, k, tile.left_row, full);
    load_box(tiles.b, stage * HopperTiles::kColumns, right, k, tile.right_row, full);
  }
  __device__ void store_pair(const Tile& tile, int m, int n, float first, float second) const {
    const MatrixOutput output = {y, sizes.m, sizes.n};
    output.store_inside(tile.batch, tile.m + m, tile.n + n, first, second);
  }
};

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
    const auto& sizes = matrices_.sizes();
    matrices_.round(args);
    const auto* right = args.scratch + matrices_.right_start();
    const HopperMatMulProblem problem = {
        sizes,
        make_tensor_map(reinterpret_cast<const BFloat16*>(args.scratch), matrices_.rows(0), sizes.k,
                        HopperTiles::kRows),
        make_tensor_map(reinterpret_cast<const BFloat16*>(right), matrices_.rows(1), sizes.k,
                        HopperTiles::kColumns),
        {args.out<float>(0), sizes.batch * sizes.m * sizes.n},
        matrices_.offsets()};
    launch_hopper_gemm(args.stream, "hopper", problem,
                       sizes.batch * ceil_div(sizes.m, HopperTiles::kRows) *
                           ceil_div(sizes.n, HopperTiles::kColumns));
  }

 private:
  RoundedMatrices matrices_;
};

}  // namespace

void add_hopper_matmul_kernels(KernelList& list) {
  add_for_wgmma(list, kernel_entry<HopperMatMul>(MatMul::kName, "hopper"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
