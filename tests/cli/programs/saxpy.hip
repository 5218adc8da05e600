// A program of HIP: saxpy, a shuffle of a warp, an array of a texture.
// SPDX-License-Identifier: Apache-2.0
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

#define CHECK(call)                                           \
  if (const hipError_t error = call; error != hipSuccess) {   \
    std::printf("%s: %s\n", #call, hipGetErrorString(error)); \
    return 1;                                                 \
  }

__global__ void saxpy(float a, const float* x, float* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void sum(const float* x, float* out) {
  float value = x[threadIdx.x];
  for (int i = warpSize / 2; i > 0; i /= 2) value += __shfl_down(value, i);
  if (threadIdx.x == 0) *out = value;
}

int main() {
  constexpr unsigned kCount = 100;
  std::vector<float> x(kCount, 2.0f), y(kCount, 1.0f);
  float *device_x, *device_y, total;
  CHECK(hipMalloc(&device_x, kCount * sizeof(float)));
  CHECK(hipMalloc(&device_y, kCount * sizeof(float)));
  CHECK(hipMemcpy(device_x, x.data(), kCount * sizeof(float), hipMemcpyHostToDevice));
  CHECK(hipMemcpy(device_y, y.data(), kCount * sizeof(float), hipMemcpyHostToDevice));
  saxpy<<<dim3(2), dim3(64), 0, hipStreamDefault>>>(3.0f, device_x, device_y, kCount);
  CHECK(hipGetLastError());
  hipLaunchKernelGGL(sum, dim3(1), dim3(32), 0, 0, device_y, device_x);
  CHECK(hipMemcpy(&total, device_x, sizeof(float), hipMemcpyDeviceToHost));
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  std::printf("%g on a warp of %d\n", total, properties.warpSize);
  CHECK(hipFree(device_x));
  CHECK(hipFree(device_y));
}
