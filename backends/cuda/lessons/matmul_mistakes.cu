// Matrix products with one mistake each, for `triptych check` to find. Each is the step "tiled" of
// the ladder (kernels/matmul.cu), except for the line that the name of the mistake points at. They
// are compiled for the counted emulation alone, and no plan chooses them.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kernels/platform.h"
#include "core/ops/matmul.h"

namespace triptych::cuda::counted {
namespace {

enum class Mistake { MissingBarrier, DivergentBarrier, OutOfBounds, Uninitialised };

struct Sizes {
  std::int64_t m = 0, n = 0, k = 0;
};

inline constexpr int kTile = 16, kLanes = 32;

struct Tile {
  Shared<float, kTile, kTile> a;  // [m, k]
  Shared<float, kTile, kTile> b;  // [k, n]
};

/// y [m, n] = a [m, k] b [k, n]. One thread per element, a block of 16 x 16 shares its tiles.
template <Mistake kMistake>
__global__ void tiled_kernel(Global<const float> a, Global<const float> b, Global<float> y,
                             Sizes sizes) {
  auto& tile = shared<Tile>();
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const std::int64_t m = std::int64_t{blockIdx.x} * kTile + row;
  const std::int64_t n = std::int64_t{blockIdx.y} * kTile + column;
  if (kMistake == Mistake::DivergentBarrier && (m >= sizes.m || n >= sizes.n)) return;
  float sum = 0;
  for (std::int64_t k0 = 0; k0 < sizes.k; k0 += kTile) {
    const bool a_inside =
        kMistake == Mistake::OutOfBounds || (m < sizes.m && k0 + column < sizes.k);
    const bool b_inside = kMistake == Mistake::OutOfBounds || (n < sizes.n && k0 + row < sizes.k);
    if (a_inside) tile.a(row, column) = a[m * sizes.k + k0 + column];
    if (b_inside) tile.b(row, column) = b[(k0 + row) * sizes.n + n];
    if (kMistake != Mistake::Uninitialised && !a_inside) tile.a(row, column) = 0.0F;
    if (kMistake != Mistake::Uninitialised && !b_inside) tile.b(row, column) = 0.0F;
    if (kMistake != Mistake::MissingBarrier) __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      const float factor = tile.a(row, k);
      sum = std::fma(factor, tile.b(k, column), sum);
    }
    __syncthreads();
  }
  if (m < sizes.m && n < sizes.n) y[m * sizes.n + n] = sum;
}

/// One warp per element. Its lanes share the products and add them up by shuffles. Lanes without a
/// product have left, though the shuffle's mask still waits for them.
__global__ void missing_lane_kernel(Global<const float> a, Global<const float> b, Global<float> y,
                                    Sizes sizes) {
  const std::int64_t m = blockIdx.x, n = blockIdx.y, lane = threadIdx.x;
  if (lane >= sizes.k) return;
  float sum = 0;
  for (std::int64_t k = lane; k < sizes.k; k += kLanes) {
    const float factor = a[m * sizes.k + k];
    sum = std::fma(factor, b[k * sizes.n + n], sum);
  }
  for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (lane == 0) y[m * sizes.n + n] = sum;
}

unsigned tiles(std::int64_t count) { return static_cast<unsigned>((count + kTile - 1) / kTile); }

/// The lessons as launchable kernels.
template <Mistake kMistake>
struct Tiled {
  static constexpr const char* kName =
      kMistake == Mistake::MissingBarrier     ? "lesson-missing-barrier"
      : kMistake == Mistake::DivergentBarrier ? "lesson-divergent-barrier"
      : kMistake == Mistake::OutOfBounds      ? "lesson-out-of-bounds"
                                              : "lesson-uninitialised";
  static constexpr auto kKernel = tiled_kernel<kMistake>;
  static LaunchShape shape(const Sizes& sizes) {
    return {{tiles(sizes.m), tiles(sizes.n)}, {kTile, kTile}, sizeof(Tile)};
  }
};
struct MissingLane {
  static constexpr const char* kName = "lesson-missing-lane";
  static constexpr auto kKernel = missing_lane_kernel;
  static LaunchShape shape(const Sizes& sizes) {
    return {{static_cast<unsigned>(sizes.m), static_cast<unsigned>(sizes.n)}, {kLanes}};
  }
};

template <class Lesson>
class LessonKernel : public Kernel {
 public:
  LessonKernel(const KernelQuery& query, Device&) : sizes_(sizes_of(query)) {}

  static Verdict accepts(const KernelQuery& query) {
    const auto& op = query.as<MatMul>();
    const bool plain = query.dense() && !op.transpose_a && !op.transpose_b &&
                       query.inputs[0].spec.shape.rank() == 2 &&
                       query.inputs[1].spec.shape.rank() == 2;
    if (!plain || query.contract != Contract::F32) {
      return Verdict::no("a lesson multiplies two plain matrices, under f32");
    }
    return Verdict::yes();
  }

  void run(const KernelArgs& args) override {
    const auto& s = sizes_;
    if (s.m == 0 || s.n == 0) return;
    launch(args.stream, Lesson::kName, Lesson::shape(s), Lesson::kKernel,
           Global(args.in<float>(0), s.m * s.k), Global(args.in<float>(1), s.k * s.n),
           Global(args.out<float>(0), s.m * s.n), s);
  }

 private:
  static Sizes sizes_of(const KernelQuery& query) {
    const auto &a = query.inputs[0].spec.shape, &b = query.inputs[1].spec.shape;
    return {a[0], b[1], a[1]};
  }

  Sizes sizes_;
};

}  // namespace

KernelTable lesson_table() {
  static const std::vector<KernelEntry> list = [] {
    std::vector<KernelEntry> entries;
    const auto add = [&]<class Lesson>(Lesson) {
      entries.push_back(kernel_entry<LessonKernel<Lesson>>(MatMul::kName, Lesson::kName));
    };
    add(Tiled<Mistake::MissingBarrier>());
    add(Tiled<Mistake::DivergentBarrier>());
    add(Tiled<Mistake::OutOfBounds>());
    add(Tiled<Mistake::Uninitialised>());
    add(MissingLane());
    return entries;
  }();
  return list;
}

}  // namespace triptych::cuda::counted
