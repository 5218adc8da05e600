// A kernel with nearly the most parameters that CUDA 12.1 allows, and one with too many.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>

template <int kCount>
struct Numbers {
  int values[kCount];
};
constexpr int kLarge = 8000;

template <int kCount>
__global__ void add(__grid_constant__ const Numbers<kCount> numbers, int* sum, short last) {
  int total = last;
  for (int value : numbers.values) total += value;
  *sum = total;
}

int main() {
  static Numbers<kLarge> large;
  static Numbers<kLarge + 200> too_large;
  int expected = -7, *sum;
  for (int i = 0; i < kLarge; ++i) expected += large.values[i] = i * i % 1000;
  cudaMallocManaged(&sum, sizeof(int));
  add<<<1, 1>>>(large, sum, -7);
  cudaDeviceSynchronize();
  std::printf("%s, ", *sum == expected ? "right" : "wrong");
  add<<<1, 1>>>(too_large, sum, -7);
  std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}
