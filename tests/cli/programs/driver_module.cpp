// The driver API on a module that was built before: kernels, variables, parameters, streams, pinned
// memory, fills, pitched copies. Argument: the module's file, and "race" for a kernel with a
// mistake.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                \
  do {                                                                             \
    const CUresult result = (call);                                                \
    const char* name = nullptr;                                                    \
    if (result != CUDA_SUCCESS && cuGetErrorName(result, &name) == CUDA_SUCCESS) { \
      std::printf("line %d: %s\n", __LINE__, name);                                \
      std::exit(1);                                                                \
    }                                                                              \
  } while (0)

constexpr int kCount = 100;

CUmodule module;

float smooth(CUstream stream) {
  CUfunction kernel;
  CHECK(cuModuleGetFunction(&kernel, module, "smooth"));
  CUdeviceptr weights, calls, x, y;
  size_t bytes = 0;
  CHECK(cuModuleGetGlobal(&weights, &bytes, module, "weights"));
  CHECK(cuModuleGetGlobal(&calls, nullptr, module, "calls"));
  const float values[] = {1, 2, 3, 4};
  CHECK(cuMemcpyHtoD(weights, values, bytes));
  CHECK(cuMemsetD32(calls, 5, 1));
  float* host;
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&host), kCount * sizeof(float),
                       CU_MEMHOSTALLOC_DEVICEMAP));
  for (int i = 0; i < kCount; ++i) host[i] = i;
  CHECK(cuMemAlloc(&x, kCount * sizeof(float)));
  CHECK(cuMemAlloc(&y, kCount * sizeof(float)));
  CHECK(cuMemcpyHtoDAsync(x, host, kCount * sizeof(float), stream));
  int count = kCount;
  void* parameters[] = {&x, &y, &count};
  CUevent begin, end;
  CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  CHECK(cuEventRecord(begin, stream));
  CHECK(cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
  CHECK(cuEventRecord(end, stream));
  CHECK(cuMemcpyDtoHAsync(host, y, kCount * sizeof(float), stream));
  CHECK(cuStreamSynchronize(stream));
  float milliseconds = -1;
  CHECK(cuEventElapsedTime(&milliseconds, begin, end));
  int called = 0;
  CHECK(cuMemcpyDtoH(&called, calls, sizeof(called)));
  std::printf("%g %g, %d calls, %s\n", host[0], host[kCount - 1], called,
              milliseconds >= 0 ? "timed" : "not timed");
  const float first = host[0];
  CHECK(cuMemFreeHost(host));
  CHECK(cuMemFree(x));
  CHECK(cuMemFree(y));
  return first;
}

// Rows of a pitched array, and parameters in one buffer.
void sum_rows() {
  constexpr int kWidth = 8, kHeight = 3;
  CUfunction kernel;
  CHECK(cuModuleGetFunction(&kernel, module, "sum_rows"));
  std::vector<float> rows(kWidth * kHeight);
  for (int i = 0; i < kWidth * kHeight; ++i) rows[i] = i;
  CUdeviceptr pitched, x, sums;
  size_t pitch = 0;
  CHECK(cuMemAllocPitch(&pitched, &pitch, kWidth * sizeof(float), kHeight, 4));
  CHECK(cuMemAlloc(&x, rows.size() * sizeof(float)));
  CHECK(cuMemAlloc(&sums, kHeight * sizeof(float)));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = rows.data();
  copy.srcPitch = kWidth * sizeof(float);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = pitched;
  copy.dstPitch = pitch;
  copy.WidthInBytes = kWidth * sizeof(float);
  copy.Height = kHeight;
  CHECK(cuMemcpy2D(&copy));
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = back.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = pitched;
  back.srcPitch = pitch;
  back.dstDevice = x;
  back.dstPitch = back.WidthInBytes = kWidth * sizeof(float);
  back.Height = kHeight;
  CHECK(cuMemcpy2D(&back));
  struct {
    CUdeviceptr x, sums;
    struct {
      char first;
      double second;
    } add;
    short width;
  } buffer = {x, sums, {1, 0.5}, kWidth};
  size_t bytes = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CHECK(cuLaunchKernel(kernel, kHeight, 1, 1, kWidth, 1, 1, kWidth * sizeof(float), nullptr,
                       nullptr, extra));
  CHECK(cuCtxSynchronize());
  float host[kHeight];
  CHECK(cuMemcpyDtoH(host, sums, sizeof(host)));
  std::printf("rows %g %g %g\n", host[0], host[1], host[2]);
}

int main(int count, char** words) {
  CHECK(cuInit(0));
  CUdevice device;
  CUcontext context;
  CHECK(cuDeviceGet(&device, 0));
  char name[64];
  int threads = 0;
  CHECK(cuDeviceGetName(name, sizeof(name), device));
  CHECK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
  std::printf("%s, %d threads\n", name, threads);
  CHECK(cuCtxCreate(&context, 0, device));
  CHECK(cuModuleLoad(&module, words[1]));
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  smooth(stream);
  sum_rows();
  if (count > 2 && std::strcmp(words[2], "race") == 0) {
    CUfunction kernel;
    CUdeviceptr x;
    CHECK(cuModuleGetFunction(&kernel, module, "race"));
    CHECK(cuMemAlloc(&x, sizeof(float)));
    void* parameters[] = {&x};
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  }
  CHECK(cuStreamDestroy(stream));
  CHECK(cuModuleUnload(module));
  CHECK(cuCtxDestroy(context));
}
