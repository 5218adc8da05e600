// A lambda of a kernel's argument uses a structured binding of main. clang accepts this from
// version 16 on.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <tuple>

template <class F>
__global__ void apply(int* out, F function) {
  out[threadIdx.x] = function(threadIdx.x);
}

int main() {
  const auto [factor, offset] = std::make_tuple(3, 4);
  int* out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  apply<<<1, 32>>>(out, [factor, offset] __device__(int i) { return factor * i + offset; });
  cudaDeviceSynchronize();
  const auto sum = [&] { return out[0] + out[31] + offset; };
  std::printf("%d\n", sum());
}
