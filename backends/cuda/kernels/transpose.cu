// SPDX-License-Identifier: Apache-2.0
#include "core/ops/transpose.h"

#include "backends/cuda/kernels/strided_copy.cuh"
#include "core/base/checked_math.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

constexpr int kTile = 32;
constexpr int kWarps = static_cast<int>(kBlock) / kTile;
constexpr std::int64_t kNarrowest = 8;  ///< a narrower plane leaves most lanes of a tile idle

/// Padding behind each row, at least a bank, puts a column of a tile into different banks.
template <class T>
struct Tile {
  static constexpr int kPadding = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  Shared<T, kTile, kTile + kPadding> elements;
};

/// The two axes of y between which contiguity moves: x lies contiguous along rows, y along columns.
/// `outer` holds the other axes.
struct TransposedPlanes {
  std::int64_t rows = 1, columns = 1;
  std::int64_t y_row = 0, x_column = 0;  ///< elements to the next of each
  std::int64_t down = 0, across = 0;     ///< tiles
  CopyWalk outer;
};

/// A block moves a tile through shared memory: its warps read along x's rows, then write along y's.
template <class T>
__global__ void transpose_kernel(Global<const T> x, Global<T> y, TransposedPlanes planes) {
  auto& tile = shared<Tile<T>>().elements;
  const int lane = static_cast<int>(threadIdx.x) % kTile;
  const int warp = static_cast<int>(threadIdx.x) / kTile;
  const auto tiles = planes.outer.offsets.elements * planes.down * planes.across;
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t column = t % planes.across * kTile;
    const std::int64_t row = t / planes.across % planes.down * kTile;
    std::int64_t at[2];
    planes.outer.offsets.at(t / planes.across / planes.down, at);
    const std::int64_t x_first = planes.outer.first[1] + at[1] + row + column * planes.x_column;
    const std::int64_t y_first = planes.outer.first[0] + at[0] + row * planes.y_row + column;
    for (int c = warp; c < kTile; c += kWarps) {
      if (row + lane < planes.rows && column + c < planes.columns) {
        const T value = x[x_first + lane + c * planes.x_column];
        tile(c, lane) = value;
      }
    }
    __syncthreads();
    for (int r = warp; r < kTile; r += kWarps) {
      if (row + r < planes.rows && column + lane < planes.columns) {
        const T value = tile(lane, r);
        y[y_first + r * planes.y_row + lane] = value;
      }
    }
    __syncthreads();
  }
}

void remove_axis(ElementOffsets<2>& offsets, int axis) {
  offsets.elements /= offsets.sizes[axis];
  --offsets.axes;
  for (; axis < offsets.axes; ++axis) {
    offsets.sizes[axis] = offsets.sizes[axis + 1];
    std::copy_n(offsets.strides[axis + 1], 2, offsets.strides[axis]);
  }
}

/// The planes of a copy, without columns where there are none.
TransposedPlanes planes_of(const CopyWalk& walk) {
  const auto& [axes, elements, sizes, strides] = walk.offsets;
  TransposedPlanes planes{.columns = 0, .outer = walk};
  const int column = axes - 1;
  if (elements == 0 || axes < 2 || strides[column][0] != 1) return planes;
  int row = column - 1;
  while (row >= 0 && strides[row][1] != 1) --row;
  if (row < 0 || sizes[row] < kNarrowest || sizes[column] < kNarrowest) return planes;
  planes.rows = sizes[row];
  planes.columns = sizes[column];
  planes.y_row = strides[row][0];
  planes.x_column = strides[column][1];
  planes.down = ceil_div(planes.rows, kTile);
  planes.across = ceil_div(planes.columns, kTile);
  remove_axis(planes.outer.offsets, column);
  remove_axis(planes.outer.offsets, row);
  return planes;
}

class TiledTranspose : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) {
    if (const auto verdict = accepts_rank(query); !verdict.accepted) return verdict;
    if (planes_of(walk_of(query)).columns > 0) return Verdict::yes();
    return Verdict::no("the last axis stays, or is too narrow");
  }

  TiledTranspose(const KernelQuery& query, Device&)
      : walk_(walk_of(query)),
        planes_(planes_of(walk_)),
        element_size_(dtype_size(query.inputs[0].spec.dtype)) {}

  void run(const KernelArgs& args) override {
    visit_unit(element_size_, [&](auto unit) { run_as<decltype(unit)>(args); });
  }

 private:
  static CopyWalk walk_of(const KernelQuery& query) {
    return {query.as<Transpose>().view_of(operand_view(query.inputs[0])),
            operand_view(query.outputs[0])};
  }

  template <class T>
  void run_as(const KernelArgs& args) const {
    auto shape = one_dimension(planes_.outer.offsets.elements * planes_.down * planes_.across *
                               static_cast<std::int64_t>(kBlock));
    shape.shared_bytes = sizeof(Tile<T>);
    launch(args.stream, "transpose", shape, transpose_kernel<T>,
           Global(args.in<T>(0), walk_.reach(1)), Global(args.out<T>(0), walk_.reach(0)), planes_);
  }

  CopyWalk walk_;
  TransposedPlanes planes_;
  std::size_t element_size_;
};

}  // namespace

void add_transpose_kernels(KernelList& list) {
  list.push_back(kernel_entry<TiledTranspose>(Transpose::kName, "tiled"));
  list.push_back(kernel_entry<ViewKernel<Transpose>>(Transpose::kName, "strided_copy"));
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
