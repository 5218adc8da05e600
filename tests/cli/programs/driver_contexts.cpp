// Contexts of several threads, addresses apart from memory, arrays, and a texture object.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <nvrtc.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

const char* source = R"(
extern "C" __global__ void fill(int* x, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value + i;
}
extern "C" __global__ void turn(float* out, cudaTextureObject_t image, int width) {
  const int x = threadIdx.x, y = threadIdx.y;
  out[y * width + x] = tex2D<float>(image, y + 0.5f, x + 0.5f);
}
)";

std::vector<char> compile() {
  nvrtcProgram program;
  nvrtcCreateProgram(&program, source, nullptr, 0, nullptr, nullptr);
  nvrtcCompileProgram(program, 0, nullptr);
  size_t bytes = 0;
  nvrtcGetCUBINSize(program, &bytes);
  std::vector<char> image(bytes);
  nvrtcGetCUBIN(program, image.data());
  nvrtcDestroyProgram(&program);
  return image;
}

// A context that moves to another thread with its module.
void work_in(CUcontext context, CUmodule module, int value, int* result) {
  cuCtxPushCurrent(context);
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module, "fill");
  CUdeviceptr x;
  int n = 40, host[40];
  cuMemAlloc(&x, sizeof(host));
  void* parameters[] = {&x, &value, &n};
  cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr);
  cuMemcpyDtoH(host, x, sizeof(host));
  *result = host[39];
  cuCtxPopCurrent(nullptr);  // x is freed with the context
}

// Two pieces of memory behind one range of addresses, compressed where the GPU can do so.
int map_memory(CUfunction kernel, bool* is_compressed) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  size_t piece = 0;
  cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  CUdeviceptr range;
  cuMemAddressReserve(&range, 2 * piece, 0, 0, 0);
  for (int i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle memory;
    cuMemCreate(&memory, piece, &properties, 0);
    cuMemMap(range + i * piece, piece, 0, memory, 0);
    CUmemAllocationProp made;
    cuMemGetAllocationPropertiesFromHandle(&made, memory);
    *is_compressed = made.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC;
    cuMemRelease(memory);
  }
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  cuMemSetAccess(range, 2 * piece, &access, 1);
  CUdeviceptr middle = range + piece - 100 * sizeof(int);
  int value = 1000, n = 200, host[200];
  void* parameters[] = {&middle, &value, &n};
  cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr);
  cuMemcpyDtoH(host, middle, 100 * sizeof(int));
  cuMemcpyDtoH(host + 100, range + piece, 100 * sizeof(int));
  cuMemUnmap(range, 2 * piece);
  cuMemAddressFree(range, 2 * piece);
  return host[199] - host[0];
}

float turn_image(CUmodule module) {
  constexpr int kWidth = 4, kHeight = 4;
  float pixels[kWidth * kHeight], turned[kWidth * kHeight];
  for (int i = 0; i < kWidth * kHeight; ++i) pixels[i] = i;
  const CUDA_ARRAY_DESCRIPTOR how = {kWidth, kHeight, CU_AD_FORMAT_FLOAT, 1};
  CUarray array;
  cuArrayCreate(&array, &how);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = pixels;
  copy.srcPitch = copy.WidthInBytes = kWidth * sizeof(float);
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.Height = kHeight;
  cuMemcpy2D(&copy);
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC texture = {};
  texture.addressMode[0] = texture.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
  CUtexObject image;
  cuTexObjectCreate(&image, &resource, &texture, nullptr);
  CUdeviceptr out;
  cuMemAlloc(&out, sizeof(turned));
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module, "turn");
  int width = kWidth;
  void* parameters[] = {&out, &image, &width};
  cuLaunchKernel(kernel, 1, 1, 1, kWidth, kHeight, 1, 0, nullptr, parameters, nullptr);
  cuMemcpyDtoH(turned, out, sizeof(turned));
  cuTexObjectDestroy(image);
  cuArrayDestroy(array);
  cuMemFree(out);
  return turned[1];
}

int main() {
  cuInit(0);
  const auto image = compile();
  int results[2];
  CUcontext contexts[2];
  CUmodule modules[2];
  for (int i = 0; i < 2; ++i) {
    cuCtxCreate(&contexts[i], 0, 0);
    cuModuleLoadData(&modules[i], image.data());
    cuCtxPopCurrent(nullptr);
    std::thread(work_in, contexts[i], modules[i], 100 * i, &results[i]).join();
  }
  cuCtxSetCurrent(contexts[1]);
  CUfunction kernel;
  cuModuleGetFunction(&kernel, modules[1], "fill");
  int can_compress = 0;
  cuDeviceGetAttribute(&can_compress, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0);
  bool is_compressed = false;
  const int mapped = map_memory(kernel, &is_compressed);
  const float turned = turn_image(modules[1]);
  for (const auto context : contexts) cuCtxDestroy(context);
  CUcontext current = contexts[0];
  cuCtxGetCurrent(&current);
  size_t free = 0, total = 0;
  CUcontext primary;
  cuDevicePrimaryCtxRetain(&primary, 0);
  cuCtxPushCurrent(primary);
  cuMemGetInfo(&free, &total);
  cuDevicePrimaryCtxRelease(0);
  std::printf("%d %d, %d, %g, %s, %zu bytes in use, compression %d %d\n", results[0], results[1],
              mapped, turned, current == nullptr ? "no context" : "a context", total - free,
              can_compress, is_compressed);
}
