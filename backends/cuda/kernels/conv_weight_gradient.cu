// The weight gradient of a convolution on the CUDA cores: dw[o, (c, tap)] = sum over k = (image,
// position) of dy[o, k] patch[k, (c, tap)], each one chain of fused multiply-adds in ascending k.
// dw is small and k is long, so the kernel keeps all multiprocessors busy with small tiles of dw,
// and walks over k row by row: where a row of dy and of a patch lies is then known without a
// division per element.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/conv_taps.cuh"
#include "backends/cuda/kernels/gemm.cuh"
#include "backends/cuda/kernels/operand_span.h"
#include "core/ops/conv.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

/// A block of threads owns kSize x kSize elements of dw, a thread kEach x kEach of them, kAcross
/// apart. It brings kDepth positions of k at a time, one for each lane of a warp.
template <int kSize_, int kEach_>
struct GradientTile {
  static constexpr int kSize = kSize_, kEach = kEach_, kDepth = 32, kVector = 4;
  static constexpr int kAcross = kSize / kEach, kThreads = kAcross * kAcross;
  static constexpr int kWarps = kThreads / kDepth;
  static constexpr int kBrought = kSize / kWarps;  ///< rows of either operand by each thread
  /// Four more columns: eight threads that read vectors of neighbouring rows meet 32 banks.
  Shared<float, kSize, kDepth + kVector> dy, patches;
};

/// The positions of k that a block brings at once: `columns` columns of `rows` rows of dy.
struct GradientStep {
  std::int32_t columns = 1, rows = 1;

  explicit GradientStep(const Window& w) {
    constexpr std::int64_t kMost = 32;
    columns = static_cast<std::int32_t>(std::min(w.out[1], kMost));
    rows = static_cast<std::int32_t>(std::clamp<std::int64_t>(kMost / columns, 1, w.out[0]));
  }
};

struct GradientProblem {
  GemmSizes sizes;                        ///< a batch entry is a group
  std::int32_t in[2], out[2], stride[2];  ///< of the window, per axis
  GradientStep step;
  std::int64_t images = 1, taps = 1, channels = 1;  ///< channels of x in a group
  Global<const Tap> table;
  Global<const float> x, dy;
  std::int64_t x_image = 0, dy_image = 0;
  Global<float> dw;
  std::int64_t dw_row = 0;
};

/// Where a block is on its way over k.
struct GradientPlace {
  std::int64_t image = 0;
  std::int32_t row = 0, column = 0;

  /// False at the end.
  __device__ bool advance(const GradientProblem& problem) {
    column += problem.step.columns;
    if (column < problem.out[1]) return true;
    column = 0;
    row += problem.step.rows;
    if (row < problem.out[0]) return true;
    row = 0;
    return ++image < problem.images;
  }
  /// Positions of k from here on.
  __device__ int depth(const GradientProblem& problem) const {
    const auto columns_left = problem.out[1] - column;
    if (columns_left < problem.step.columns) return columns_left;
    const auto rows_left = problem.out[0] - row;
    return problem.step.columns * (rows_left < problem.step.rows ? rows_left : problem.step.rows);
  }
};

/// The elements that a thread brings: those at the position of its lane in kBrought rows of either
/// operand.
template <class Tile, bool kRound>
class GradientOperands {
 public:
  __device__ GradientOperands(const GradientProblem& problem, std::int64_t m0, std::int64_t n0)
      : problem_(problem) {
    const int lane = static_cast<int>(threadIdx.x) % Tile::kDepth;
    const int warp = static_cast<int>(threadIdx.x) / Tile::kDepth;
    row_ = lane / problem.step.columns;
    column_ = lane % problem.step.columns;
    const std::int64_t group = blockIdx.z;
    const std::int64_t in_plane = std::int64_t{problem.in[0]} * problem.in[1];
    const std::int64_t out_plane = std::int64_t{problem.out[0]} * problem.out[1];
#pragma unroll
    for (int t = 0; t < Tile::kBrought; ++t) {
      const std::int64_t m = m0 + warp + t * Tile::kWarps, n = n0 + warp + t * Tile::kWarps;
      dy_first_[t] = kOutside;
      if (m < problem.sizes.m) {
        dy_first_[t] = static_cast<std::int32_t>((group * problem.sizes.m + m) * out_plane);
      }
      x_first_[t] = kOutside;
      if (n < problem.sizes.n) {
        taps_[t] = problem.table[n % problem.taps];
        x_first_[t] =
            static_cast<std::int32_t>((group * problem.channels + n / problem.taps) * in_plane);
      }
    }
  }

  /// Reads the operands at a place.
  __device__ void fetch(const GradientPlace& place, int depth) {
    const int lane = static_cast<int>(threadIdx.x) % Tile::kDepth;
    const int row = place.row + row_, column = place.column + column_;
    const auto dy = problem_.dy.from(place.image * problem_.dy_image);
    const auto x = problem_.x.from(place.image * problem_.x_image);
    const int from_dy = row * problem_.out[1] + column;
    const int from_row = row * problem_.stride[0], from_column = column * problem_.stride[1];
#pragma unroll
    for (int t = 0; t < Tile::kBrought; ++t) {
      dy_[t] = 0;
      if (lane < depth && dy_first_[t] != kOutside) dy_[t] = dy[dy_first_[t] + from_dy];
    }
#pragma unroll
    for (int t = 0; t < Tile::kBrought; ++t) {
      patch_[t] = 0;
      const int y = from_row + taps_[t].dy, along = from_column + taps_[t].dx;
      // As unsigned numbers, positions before an axis are also behind it.
      const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(problem_.in[0]) &&
                          static_cast<unsigned>(along) < static_cast<unsigned>(problem_.in[1]);
      if (lane < depth && x_first_[t] != kOutside && inside) {
        patch_[t] = x[x_first_[t] + y * problem_.in[1] + along];
      }
    }
  }

  __device__ void store(Tile& tile) const {
    const int lane = static_cast<int>(threadIdx.x) % Tile::kDepth;
    const int warp = static_cast<int>(threadIdx.x) / Tile::kDepth;
#pragma unroll
    for (int t = 0; t < Tile::kBrought; ++t) {
      tile.dy(warp + t * Tile::kWarps, lane) = operand<kRound>(dy_[t]);
      tile.patches(warp + t * Tile::kWarps, lane) = operand<kRound>(patch_[t]);
    }
  }

 private:
  static constexpr std::int32_t kOutside = -1;  ///< of the tensor: such rows are 0
  const GradientProblem& problem_;
  int row_ = 0, column_ = 0;
  std::int32_t dy_first_[Tile::kBrought], x_first_[Tile::kBrought];  ///< within an image
  Tap taps_[Tile::kBrought] = {};
  float dy_[Tile::kBrought], patch_[Tile::kBrought];
};

/// Adds the products of `depth` positions to the thread's sums, k ascending.
template <class Tile>
__device__ void multiply_positions(Tile& tile, int depth, int m, int n,
                                   float (&sum)[Tile::kEach][Tile::kEach]) {
  constexpr int kEach = Tile::kEach, kVector = Tile::kVector;
#pragma unroll 2
  for (int k = 0; k < depth; k += kVector) {
    Vector<float, kVector> a[kEach], b[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      a[i] = tile.dy.template load<kVector>(m + i * Tile::kAcross, k);
      b[i] = tile.patches.template load<kVector>(n + i * Tile::kAcross, k);
    }
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      if (k + v >= depth) break;  // adding zeros could turn a -0 into +0
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] = multiply_add(a[i][v], b[j][v], sum[i][j]);
      }
    }
  }
}

/// Grid: (tiles of m, tiles of n, groups).
template <class Tile, bool kRound>
__global__ void __launch_bounds__(Tile::kThreads)
    conv_weight_gradient_kernel(const __grid_constant__ GradientProblem problem) {
  constexpr int kEach = Tile::kEach;
  auto& tile = shared<Tile>();
  const std::int64_t m0 = std::int64_t{blockIdx.x} * Tile::kSize;
  const std::int64_t n0 = std::int64_t{blockIdx.y} * Tile::kSize;
  const int m = static_cast<int>(threadIdx.x) / Tile::kAcross;
  const int n = static_cast<int>(threadIdx.x) % Tile::kAcross;
  float sum[kEach][kEach] = {};
  GradientOperands<Tile, kRound> operands(problem, m0, n0);
  GradientPlace place;
  bool more = problem.sizes.k > 0;
  int depth = place.depth(problem);
  if (more) operands.fetch(place, depth);
  while (more) {
    operands.store(tile);
    __syncthreads();
    const int here = depth;
    more = place.advance(problem);
    if (more) {  // the next ones are on their way while the present ones are multiplied
      depth = place.depth(problem);
      operands.fetch(place, depth);
    }
    multiply_positions(tile, here, m, n, sum);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t row = m0 + m + i * Tile::kAcross, column = n0 + n + j * Tile::kAcross;
      if (row >= problem.sizes.m || column >= problem.sizes.n) continue;
      problem.dw[(blockIdx.z * problem.sizes.m + row) * problem.dw_row + column] =
          canonical(sum[i][j]);
    }
  }
}

using SmallTile = GradientTile<16, 2>;
using LargeTile = GradientTile<64, 4>;

unsigned tiles_of(std::int64_t size, int tile) {
  return static_cast<unsigned>((size + tile - 1) / tile);
}

template <class Tile, bool kRound>
void launch_gradient(Stream* stream, const GradientProblem& problem) {
  const auto& sizes = problem.sizes;
  launch(stream, "conv_weight_gradient",
         {{tiles_of(sizes.m, Tile::kSize), tiles_of(sizes.n, Tile::kSize),
           static_cast<unsigned>(sizes.batch)},
          {static_cast<unsigned>(Tile::kThreads)},
          sizeof(Tile)},
         kInstance<conv_weight_gradient_kernel<Tile, kRound>>, problem);
}

class ConvWeightGradientKernel : public Kernel {
 public:
  ConvWeightGradientKernel(const KernelQuery& query, Device& device)
      : g_(geometry(query)),
        round_(rounds_operands(query.contract)),
        x_(query.inputs[0]),
        dy_(query.inputs[1]),
        dw_(query.outputs[0]),
        taps_(device, window_taps(g_.window, 0), window_taps(g_.window, 1), g_.window.kernel[1]) {}

  static Verdict accepts(const KernelQuery& query) {
    const auto g = geometry(query);
    constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
    if (g.in_channels * g.in_plane() > kMost || g.out_channels * g.out_plane() > kMost) {
      return Verdict::no("takes images of up to 2^31 - 1 elements");
    }
    // The small tile's blocks count the most.
    return accepts_gemm({g.groups, g.group_out(), 4 * g.group_in() * g.taps(), 1}, query.contract);
  }

  std::size_t resident_bytes() const override { return taps_.bytes(); }

  void run(const KernelArgs& args) override {
    const auto problem = problem_of(args);
    const auto& sizes = problem.sizes;
    if (sizes.batch == 0 || sizes.m == 0 || sizes.n == 0) return;
    constexpr int kLarge = LargeTile::kSize;
    const auto blocks =
        std::int64_t{tiles_of(sizes.m, kLarge)} * tiles_of(sizes.n, kLarge) * sizes.batch;
    if (sizes.m >= kLarge && sizes.n >= kLarge && blocks >= most_blocks(args.stream)) {
      round_ ? launch_gradient<LargeTile, true>(args.stream, problem)
             : launch_gradient<LargeTile, false>(args.stream, problem);
    } else {
      round_ ? launch_gradient<SmallTile, true>(args.stream, problem)
             : launch_gradient<SmallTile, false>(args.stream, problem);
    }
  }

 private:
  static ConvGeometry geometry(const KernelQuery& query) {
    return query.as<ConvWeightGradient>().geometry(query.inputs[0].spec.shape,
                                                   query.inputs[1].spec.shape);
  }

  GradientProblem problem_of(const KernelArgs& args) const {
    const auto& w = g_.window;
    const auto narrow = [](std::int64_t size) { return static_cast<std::int32_t>(size); };
    return {
        .sizes = {g_.groups, g_.group_out(), g_.group_in() * g_.taps(), g_.batch * g_.out_plane()},
        .in = {narrow(w.in[0]), narrow(w.in[1])},
        .out = {narrow(w.out[0]), narrow(w.out[1])},
        .stride = {narrow(w.stride[0]), narrow(w.stride[1])},
        .step = GradientStep(g_.window),
        .images = g_.batch,
        .taps = g_.taps(),
        .channels = g_.group_in(),
        .table = taps_.global(),
        .x = {args.in<float>(0), span_of(x_)},
        .dy = {args.in<float>(1), span_of(dy_)},
        .x_image = x_.outer_stride,
        .dy_image = dy_.outer_stride,
        .dw = {args.out<float>(0), span_of(dw_)},
        .dw_row = dw_.outer_stride};
  }

  ConvGeometry g_;
  bool round_;
  Operand x_, dy_, dw_;
  TapTable taps_;
};

}  // namespace

void add_conv_weight_gradient_kernels(KernelList& list) {
  list.push_back(kernel_entry<ConvWeightGradientKernel>(ConvWeightGradient::kName, "implicit"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
