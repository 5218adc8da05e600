// Uses a macro that only --pre-include brings, and a function of no_header.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

int identity();

__global__ void one(int* out) { *out = 1; }

int main() {
  int* out;
  cudaMallocManaged(&out, sizeof(int));
  one<<<1, 1>>>(out);
  cudaDeviceSynchronize();
  std::printf("%d %d\n", *out, identity() == static_cast<int>(getpid()));
}
