// Matrices as Hopper's copy engine takes them. The driver encodes them; it is asked for by name, so
// that this library loads where there is no driver.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime.h>

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

}  // namespace

CUtensorMap make_tensor_map(const BFloat16* data, std::int64_t rows, std::int64_t width,
                            int box_rows) {
  static const Encode encode = find_encode();
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes = sizes[0] * sizeof(BFloat16);
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  CUtensorMap map;
  const auto status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<BFloat16*>(data), sizes,
             &row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw DeviceError("the driver takes no matrix of " + std::to_string(rows) + " rows of " +
                      std::to_string(width) + " bfloat16 for the copy engine (error " +
                      std::to_string(static_cast<int>(status)) + ")");
  }
  return map;
}

}  // namespace triptych::cuda::gpu
