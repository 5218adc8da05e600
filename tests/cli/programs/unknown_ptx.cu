// Inline PTX that is not emulated: it is refused with its line.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

__global__ void halve(unsigned* value) {
  unsigned half = value[0];
  asm volatile("div.u32 %0, %0, 2;" : "+r"(half));
  value[0] = half;
}

int main() {
  unsigned* value;
  cudaMallocManaged(&value, sizeof(unsigned));
  *value = 6;
  halve<<<1, 1>>>(value);
  cudaDeviceSynchronize();
}
