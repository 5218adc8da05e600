// A launch by HIP's function, whose kernel has several template arguments.
// SPDX-License-Identifier: Apache-2.0
#define HIP_TEMPLATE_KERNEL_LAUNCH
#include <hip/hip_runtime.h>

#include <cstdio>

template <int kFactor, int kOffset, class T>
__global__ void scale(T* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = kFactor * i + kOffset;
}

int main() {
  int *values, host[40];
  hipMalloc(&values, sizeof(host));
  hipLaunchKernelGGL(scale<3, 2>, dim3(2), dim3(32), 0, hipStreamDefault, values, 40);
  hipMemcpy(host, values, sizeof(host), hipMemcpyDeviceToHost);
  std::printf("%d %d %s\n", host[0], host[39], hipGetErrorString(hipGetLastError()));
}
