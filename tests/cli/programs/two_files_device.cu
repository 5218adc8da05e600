// The second file of two_files.cu. Both have a kernel named start.
// SPDX-License-Identifier: Apache-2.0
#include <cassert>
#include <cstdio>

__device__ int twice(int value) { return 2 * value; }

static __global__ void start(int* data, int n, int value) {
  assert(n == 32);
  data[threadIdx.x] += value;
  if (threadIdx.x == 0) printf("first %d\n", data[0]);
}

void add_on_device(int* data, int n, int value) {
  void* arguments[] = {&data, &n, &value};
  cudaLaunchKernel((const void*)start, dim3(1), dim3(n), arguments, 0, nullptr);
}
