// Products on the tensor cores: a tile of halves by rows and by columns, bytes, doubles.
// SPDX-License-Identifier: Apache-2.0
#include <mma.h>

#include <cstdio>
#include <vector>

using namespace nvcuda;

/// d = a b + c for matrices of n x n halves: a warp for each tile, b lies by columns.
__global__ void multiply(const half* a, const half* b, float* d, int n) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  const int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
  wmma::fill_fragment(sum, 1.0f);
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(left, a + row * n + k, n);
    wmma::load_matrix_sync(right, b + column * n + k, n);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2;
  wmma::store_matrix_sync(d + row * n + column, sum, n, wmma::mem_row_major);
}

__global__ void others(const signed char* bytes, const double* doubles, int* whole, double* real) {
  wmma::fragment<wmma::matrix_a, 8, 32, 16, signed char, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, signed char, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 8, 32, 16, int> c;
  wmma::load_matrix_sync(a, bytes, 8);
  wmma::load_matrix_sync(b, bytes, 32);
  wmma::fill_fragment(c, 0);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(whole, c, 8, wmma::mem_col_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> y;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> z;
  wmma::load_matrix_sync(x, doubles, 4);
  wmma::load_matrix_sync(y, doubles, 8);
  wmma::fill_fragment(z, 0.5);
  wmma::mma_sync(z, x, y, z);
  wmma::store_matrix_sync(real, z, 8, wmma::mem_row_major);
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* device;
  cudaMalloc(&device, values.size() * sizeof(T));
  cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}
template <class T>
std::vector<T> on_host(const T* device, size_t count) {
  std::vector<T> values(count);
  cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost);
  return values;
}

int main() {
  constexpr int kN = 32;
  std::vector<half> a(kN * kN), b(kN * kN);
  std::vector<float> zero(kN * kN);
  for (int i = 0; i < kN * kN; ++i) {
    a[i] = half(i % 7 - 3);
    b[i] = half(i % 5 - 2);
  }
  float* d = on_device(zero);
  multiply<<<dim3(2, 2), 32>>>(on_device(a), on_device(b), d, kN);
  const auto got = on_host(d, kN * kN);
  int wrong = 0;
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 1;
      for (int k = 0; k < kN; ++k) sum += float(a[i * kN + k]) * float(b[j * kN + k]);
      wrong += got[i * kN + j] != 2 * sum;
    }
  }
  std::vector<signed char> bytes(16 * 32);
  std::vector<double> doubles(32);
  for (int i = 0; i < 512; ++i) bytes[i] = i % 11 - 5;
  for (int i = 0; i < 32; ++i) doubles[i] = 0.25 * i;
  int* whole = on_device(std::vector<int>(256));
  double* real = on_device(std::vector<double>(64));
  others<<<1, 32>>>(on_device(bytes), on_device(doubles), whole, real);
  const auto wholes = on_host(whole, 256);
  const auto reals = on_host(real, 64);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 32; ++j) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += bytes[k * 8 + i] * bytes[k * 32 + j];
      wrong += wholes[j * 8 + i] != sum;
      if (j >= 8) continue;
      double real_sum = 0.5;
      for (int k = 0; k < 4; ++k) real_sum += doubles[i * 4 + k] * doubles[k * 8 + j];
      wrong += reals[i * 8 + j] != real_sum;
    }
  }
  printf("%d wrong\n", wrong);
}
