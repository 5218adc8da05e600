// Matrices as Hopper's copy engine takes them. The driver encodes them. It is looked up by name, so
// that this library loads without a driver.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "backends/cuda/device/check.h"
#include "core/base/float16.h"

namespace triptych::cuda::gpu {
namespace {

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

[[maybe_unused]] constexpr unsigned kSince = 12000;  ///< CUDA 12.0

Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince,
                                         cudaEnableDefault, &found),
        "asking the driver for cuTensorMapEncodeTiled");
#else
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found),
        "asking the driver for cuTensorMapEncodeTiled");
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    throw DeviceError("the NVIDIA driver has no cuTensorMapEncodeTiled; install one for CUDA 12");
  }
  return reinterpret_cast<Encode>(function);
}

/// A map of bfloat16, the innermost axis first and dense.
CUtensorMap encoded(const BFloat16* data, std::span<const std::int64_t> sizes,
                    std::span<const int> box) {
  static const Encode encode = find_encode();
  cuuint64_t extents[4], strides[4];  // of an axis, from one to the next of it
  cuuint32_t boxes[4], steps[4] = {1, 1, 1, 1};
  cuuint64_t bytes = sizeof(BFloat16);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    extents[axis] = static_cast<cuuint64_t>(sizes[axis]);
    boxes[axis] = static_cast<cuuint32_t>(box[axis]);
    bytes *= extents[axis];
    strides[axis] = bytes;
  }
  CUtensorMap map;
  const auto status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(sizes.size()),
             const_cast<BFloat16*>(data), extents, strides, boxes, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw DeviceError(
        fmt::format("the driver takes no tensor of {} bfloat16, innermost first, in boxes of {} "
                    "for the copy engine (error {})",
                    fmt::join(sizes, " x "), fmt::join(box, " x "), static_cast<int>(status)));
  }
  return map;
}

}  // namespace

CUtensorMap make_tensor_map(const BFloat16* data, std::int64_t rows, std::int64_t width,
                            int box_rows) {
  const std::int64_t sizes[] = {width, rows};
  const int box[] = {64, box_rows};
  return encoded(data, sizes, box);
}

CUtensorMap make_tensor_map(const BFloat16* data, const std::int64_t (&sizes)[4],
                            const int (&box)[4]) {
  return encoded(data, sizes, box);
}

}  // namespace triptych::cuda::gpu
