// c = a b on tensor cores. a: M x K halves, b: K x N halves, c: M x N floats, all row by row.
// SPDX-License-Identifier: Apache-2.0
#include <mma.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace nvcuda;

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

/// Grid (N / 16, M / 16), blocks of 16 x 16: a thread has an element.
__global__ void plain(const half* a, const half* b, float* c, int M, int N, int K) {
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += __half2float(a[row * K + k]) * __half2float(b[k * N + column]);
  c[row * N + column] = sum;
}

/// Grid (N / 16, M / 16), blocks of 32: a warp has a tile of 16 x 16. M, N and K are multiples of
/// 16.
__global__ void tensor(const half* a, const half* b, float* c, int M, int N, int K) {
  // Yours.
}

/// Grid (N / 64, M / 64), blocks of 128: a block has a tile of 64 x 64, each of its four warps a
/// quarter, 32 x 32. Tiles of a and b lie in shared memory. M and N are multiples of 64, K of 16.
__global__ void tiled(const half* a, const half* b, float* c, int M, int N, int K) {
  // Yours.
}

/// Arguments: plain, tensor or tiled. Compares its c with that of the host.
int main(int count, char** words) {
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
  const char* name = count > 1 ? words[1] : "plain";
  if (!strcmp(name, "plain"))
    plain<<<dim3(N / 16, M / 16), dim3(16, 16)>>>(device_a, device_b, device_c, M, N, K);
  else if (!strcmp(name, "tensor"))
    tensor<<<dim3(N / 16, M / 16), 32>>>(device_a, device_b, device_c, M, N, K);
  else
    tiled<<<dim3(N / 64, M / 64), 128>>>(device_a, device_b, device_c, M, N, K);
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
