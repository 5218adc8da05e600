// The part of CUDA's runtime that backends/cuda and nvcc's code call, implemented by the
// interpreter's device: a program linked with this runs the PTX of its kernels on this processor.
// Work completes at the time of the call. Recorded work when its graph is launched.
// SPDX-License-Identifier: Apache-2.0
// NOLINTBEGIN(readability-identifier-naming): names are CUDA's
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "tests/ptx/device.h"

using triptych::ptx::Device;
using triptych::ptx::Fault;
using triptych::ptx::Kernel;
using Work = std::function<cudaError_t()>;

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};
struct CUstream_st {
  bool recording = false;
  std::vector<Work> work;

  cudaError_t add(Work one) {
    if (!recording) return one();
    work.push_back(std::move(one));
    return cudaSuccess;
  }
};
struct CUevent_st {};

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string last_words;

cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Error code of f(), which may throw Fault.
template <class F>
cudaError_t guarded(F&& f) {
  const std::lock_guard lock(Device::instance().mutex());
  try {
    f();
    return cudaSuccess;
  } catch (const Fault& fault) {
    last_words = fault.what();
    return told(cudaErrorLaunchFailure);
  }
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

triptych::ptx::Dim3 shape_of(const dim3& shape) { return {shape.x, shape.y, shape.z}; }

CUstream_st& stream_of(cudaStream_t stream) {
  static CUstream_st legacy;
  return stream == nullptr ? legacy : *stream;
}

Kernel* kernel_of(cudaKernel_t kernel) { return reinterpret_cast<Kernel*>(kernel); }

cudaError_t launch(Kernel& kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                   cudaStream_t stream) {
  std::vector<std::byte> parameters;
  const auto status = guarded([&] { parameters = Device::instance().pack(kernel, arguments); });
  if (status != cudaSuccess) return status;
  if (shared > kernel.most_shared_bytes) return told(cudaErrorInvalidValue);
  return stream_of(stream).add([=, &kernel] {
    return guarded([&] {
      Device::instance().launch(kernel, shape_of(grid), shape_of(block), shared, parameters);
    });
  });
}

template <class T>
cudaError_t make(T** target) {
  *target = std::make_unique<T>().release();
  return cudaSuccess;
}
template <class T>
cudaError_t destroy(T* pointer) {
  std::unique_ptr<T>(pointer).reset();
  return cudaSuccess;
}

constexpr std::size_t kAlignment = 512;  ///< of allocations, as cudaMalloc's

cudaError_t allocate(void** target, std::size_t bytes) {
  const auto rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  *target = std::aligned_alloc(kAlignment, rounded);  // NOLINT(cppcoreguidelines-no-malloc)
  if (*target == nullptr) return told(cudaErrorMemoryAllocation);
  std::memset(*target, 0xFF, bytes);  // previous content
  return cudaSuccess;
}

cudaError_t deallocate(void* pointer) {
  std::free(pointer);  // NOLINT(cppcoreguidelines-no-malloc)
  return cudaSuccess;
}

/// An H100's limits. Each call uses a few of them.
void describe(cudaDeviceProp& properties) {
  properties = {};
  std::strcpy(properties.name, "PTX on this processor");
  properties.major = 9;
  properties.totalGlobalMem = std::size_t{8} << 30;
  properties.sharedMemPerBlock = 48 << 10;
  properties.sharedMemPerBlockOptin = 227 << 10;
  properties.multiProcessorCount = 132;
  properties.l2CacheSize = 50 << 20;
  properties.memoryBusWidth = 5120;
  properties.warpSize = 32;
}

/// The driver's description of tensors for the copy engine ("cuTensorMapEncodeTiled"): the
/// supported layouts without interleaving.
CUresult encode_tiled(CUtensorMap* target, CUtensorMapDataType type, cuuint32_t rank, void* data,
                      const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* steps, CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                      CUtensorMapFloatOOBfill fill) {
  constexpr std::uint8_t kSwizzles[] = {0, 32, 64, 128};
  if (type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 || rank < 1 || rank > 5 ||
      interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
      reinterpret_cast<std::uint64_t>(data) % 16 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  triptych::ptx::TensorMap map;
  map.mark = triptych::ptx::TensorMap::kMark;
  map.rank = static_cast<std::uint8_t>(rank);
  map.element_bytes = 2;
  map.swizzle_bytes = kSwizzles[swizzle];
  map.data = reinterpret_cast<std::uint64_t>(data);
  for (cuuint32_t axis = 0; axis < rank; ++axis) {
    const bool is_first = axis == 0;
    if (sizes[axis] == 0 || sizes[axis] > std::uint64_t{1} << 32 || box[axis] == 0 ||
        box[axis] > 256 || steps[axis] != 1 ||
        (!is_first &&
         (strides[axis - 1] % 16 != 0 || strides[axis - 1] >= std::uint64_t{1} << 40))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    map.sizes[axis] = static_cast<std::uint32_t>(sizes[axis]);
    map.box[axis] = static_cast<std::uint16_t>(box[axis]);
    if (!is_first) map.strides[axis - 1] = strides[axis - 1];
  }
  const auto row_bytes = box[0] * std::size_t{2};
  if (row_bytes % 16 != 0 || (map.swizzle_bytes != 0 && row_bytes > map.swizzle_bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  static_assert(sizeof map == sizeof *target);
  std::memcpy(target, &map, sizeof map);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

// Calls of nvcc's code when a program starts, and at each launch.

void** __cudaRegisterFatBinary(void* binary) {
  return reinterpret_cast<void**>(&Device::instance().add_module(binary));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void** module, const char* function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  Device::instance().add_kernel(*reinterpret_cast<triptych::ptx::Module*>(module), function, name);
}
/// Variables that the host sees are not known. None of ours is written by it.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     struct CUstream_st* stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (configurations.empty()) return told(cudaErrorMissingConfiguration);
  const auto last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* target, const void* function) {
  auto* kernel = Device::instance().kernel_of(function);
  *target = reinterpret_cast<cudaKernel_t>(kernel);
  return kernel == nullptr ? told(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  if (kernel == nullptr) return told(cudaErrorInvalidDeviceFunction);
  return launch(*kernel_of(kernel), grid, block, arguments, shared, stream);
}
/// As nvcc before 12.8 launches.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  auto* kernel = Device::instance().kernel_of(function);
  if (kernel == nullptr) return told(cudaErrorInvalidDeviceFunction);
  return launch(*kernel, grid, block, arguments, shared, stream);
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? last_words.c_str() : "an error of the judge's runtime";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return told(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  describe(*properties);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  *attributes = {};
  return Device::instance().kernel_of(function) == nullptr ? told(cudaErrorInvalidDeviceFunction)
                                                           : cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  auto* kernel = Device::instance().kernel_of(function);
  if (kernel == nullptr) return told(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > 227 << 10) {
    return told(cudaErrorInvalidValue);
  }
  kernel->most_shared_bytes = static_cast<std::size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const bool known = std::strcmp(name, "cuTensorMapEncodeTiled") == 0;
  *function = known ? reinterpret_cast<void*>(&encode_tiled) : nullptr;
  *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** target, std::size_t bytes) {
  const auto status = allocate(target, bytes);
  if (status == cudaSuccess) Device::instance().memory().add(*target, bytes);
  return status;
}
cudaError_t cudaFree(void* pointer) {
  Device::instance().memory().remove(pointer);
  return deallocate(pointer);
}
cudaError_t cudaMallocHost(void** target, std::size_t bytes) { return allocate(target, bytes); }
cudaError_t cudaFreeHost(void* pointer) { return deallocate(pointer); }

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return stream_of(stream).add([=] {
    std::memset(target, value, bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return stream_of(stream).add([=] {
    std::memmove(target, source, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return make(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return destroy(stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->recording = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  stream->recording = false;
  make(graph);
  (*graph)->work = std::exchange(stream->work, {});
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  make(executable);
  (*executable)->work = graph->work;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const auto& one : executable->work) {
    const auto status = one();
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy(graph); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return destroy(executable); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return destroy(event); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
