// c = a b by mma.sync, ldmatrix and cp.async. a: M x K halves, b: K x N halves, c: M x N floats,
// all row by row.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <vector>

/// An address of shared memory for inline PTX.
__device__ unsigned address_of(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Starts a copy of 16 bytes to shared memory. An example of inline PTX: %0 and %1 are the operands
/// behind the colons, results first. "=r" is a result of 32 bits, "r" an argument, "l" an address
/// of global memory, and "+f" a float that changes.
__device__ void start_copy(half* to, const half* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(to)), "l"(from));
}

/// Grid (N / 64, M / 64), blocks of 128: a block has a tile of 64 x 64, each of its four warps a
/// quarter, 32 x 32. M and N are multiples of 64, K of 16.
__global__ void pipelined(const half* a, const half* b, float* c, int M, int N, int K) {
  // Yours.
}

/// Compares c with that of the host.
int main() {
  const int M = 128, N = 64, K = 48;
  std::vector<half> a(M * K), b(K * N);
  std::vector<float> c(M * N);
  for (int i = 0; i < M * K; ++i) a[i] = __float2half(i * 7 % 33 / 16.0f - 1);
  for (int i = 0; i < K * N; ++i) b[i] = __float2half(i * 5 % 29 / 16.0f - 1);
  half *device_a, *device_b;
  float* device_c;
  cudaMalloc(&device_a, a.size() * sizeof(half));
  cudaMalloc(&device_b, b.size() * sizeof(half));
  cudaMalloc(&device_c, c.size() * sizeof(float));
  cudaMemcpy(device_a, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice);
  pipelined<<<dim3(N / 64, M / 64), 128>>>(device_a, device_b, device_c, M, N, K);
  cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (int row = 0; row < M; ++row) {
    for (int column = 0; column < N; ++column) {
      float sum = 0;
      for (int k = 0; k < K; ++k) {
        sum += __half2float(a[row * K + k]) * __half2float(b[k * N + column]);
      }
      if (std::fabs(sum - c[row * N + column]) <= 1e-3f) continue;
      printf("c[%d][%d] should be %g, and is %g\n", row, column, sum, c[row * N + column]);
      return 1;
    }
  }
  puts("c is right");
}
