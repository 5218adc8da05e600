// Launching kernels on a real GPU. The counterpart of emulation/grid.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/device/check.h"
#include "backends/cuda/kernels/kernel_instance.h"
#include "core/runtime/device.h"

namespace triptych::cuda::gpu {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// Demands of a kernel launch.
struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  std::size_t shared_bytes = 0;
};

/// A stream of the device.
class GpuStream : public Stream {
 public:
  explicit GpuStream(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_;
};

/// The attributes of a kernel of this build, or why the current device cannot run it.
cudaError_t probe_kernel(cudaFuncAttributes& attributes);

#if defined(__CUDACC__)
/// Shared memory that every kernel may have without asking.
inline constexpr std::size_t kPlainSharedBytes = 48 * 1024;

/// Runs kernel(arguments...) for every thread of the shape, after earlier launches on the stream.
/// Throws DeviceError naming the kernel.
template <class... Parameters, class... Arguments>
void launch(Stream* stream, const char* name, const LaunchShape& shape,
            void (*kernel)(Parameters...), const Arguments&... arguments) {
  if (shape.shared_bytes > kPlainSharedBytes) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.shared_bytes)),
          name);
  }
  const dim3 grid(shape.grid.x, shape.grid.y, shape.grid.z);
  const dim3 block(shape.block.x, shape.block.y, shape.block.z);
  kernel<<<grid, block, shape.shared_bytes, static_cast<GpuStream*>(stream)->get()>>>(
      static_cast<Parameters>(arguments)...);
  check(cudaGetLastError(), name);
}

template <auto* kKernel, class... Arguments>
void launch(Stream* stream, const char* name, const LaunchShape& shape, KernelInstance<kKernel>,
            const Arguments&... arguments) {
  launch(stream, name, shape, kKernel, arguments...);
}

/// Blocks that the GPU runs at once where each takes a multiprocessor for itself: an H100 or H200.
inline unsigned most_blocks(Stream*) { return 132; }

/// The block's shared memory as a T, a struct of Shared arrays. A launch asks for sizeof(T) bytes.
/// It starts at a multiple of 1024 bytes: the copy engine's swizzle counts from there.
template <class T>
__device__ T& shared() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return *reinterpret_cast<T*>(memory);
}
#endif

}  // namespace triptych::cuda::gpu
