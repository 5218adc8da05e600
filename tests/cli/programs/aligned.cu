// Alignments as nvcc accepts them, behind __shared__ and in types: numbers, types and expressions.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>

template <class A, class B>
struct Pair {
  A a;
  B b;
};
struct alignas(16) Number {
  float value;
};
template <class T>
struct Bytes {
  alignas(T) unsigned char bytes[sizeof(T)];
  alignas(Pair<T, int>) char further;
};
template <int kCount>
struct alignas(4 * kCount) Row {
  int values[kCount];
};

__device__ int rest(const void* address, unsigned bytes) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % bytes);
}

__global__ void alignments(int* out) {
  __shared__ char odd[3];
  __shared__ alignas(alignof(float4)) float numbers[3];
  __shared__ alignas(64) char letters[7];
  numbers[0] = letters[0] = odd[0] = 1;
  out[0] = rest(numbers, 16) + rest(letters, 64) + (numbers[0] + letters[0] + odd[0] == 3 ? 0 : 1);
}

int main() {
  int* out;
  cudaMallocManaged(&out, sizeof(int));
  alignments<<<1, 1>>>(out);
  cudaDeviceSynchronize();
  std::printf("%d, %zu %zu %zu %zu\n", out[0], alignof(Number), alignof(Bytes<double>),
              alignof(Row<4>), sizeof(Row<8>));
}
