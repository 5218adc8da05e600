// A reduction of the time before Volta: lanes of a warp add without __syncwarp().
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>

__global__ void sum(const int* in, int* out) {
  __shared__ int partial[128];
  const unsigned lane = threadIdx.x;
  partial[lane] = in[blockIdx.x * 128 + lane];
  __syncthreads();
  if (lane < 64) partial[lane] += partial[lane + 64];
  __syncthreads();
  for (unsigned step = 32; step > 0; step /= 2) {
    if (lane < step) partial[lane] += partial[lane + step];  // no barrier
  }
  if (lane == 0) out[blockIdx.x] = partial[0];
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 4 * 128 * sizeof(int));
  cudaMallocManaged(&out, 4 * sizeof(int));
  for (int i = 0; i < 4 * 128; ++i) in[i] = i;
  sum<<<4, 128>>>(in, out);
  cudaDeviceSynchronize();
  std::printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
}
