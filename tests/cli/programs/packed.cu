// Accesses through pointers to wider types, which are one access each, and of a packed type, whose
// numbers may have any address.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

#include <cstdio>

struct __attribute__((packed)) Packed {
  char tag;
  int value;
};

__global__ void widen(unsigned* pairs, double* doubles) {
  __shared__ __half halves[64];
  __shared__ float floats[64];
  for (unsigned i = threadIdx.x; i < 64; i += 32) {
    halves[i] = __float2half(1);
    floats[i] = 1;
  }
  __syncthreads();
  pairs[threadIdx.x] = *reinterpret_cast<const unsigned*>(&halves[2 * threadIdx.x]);
  doubles[threadIdx.x] = *reinterpret_cast<const double*>(&floats[2 * threadIdx.x]);
}

__global__ void unpack(const Packed* packed, int* values) {
  values[threadIdx.x] = packed[threadIdx.x].value;
}

int main() {
  unsigned* pairs;
  double* doubles;
  Packed* packed;
  int* values;
  cudaMallocManaged(&pairs, 32 * sizeof(unsigned));
  cudaMallocManaged(&doubles, 32 * sizeof(double));
  cudaMallocManaged(&packed, 32 * sizeof(Packed));
  cudaMallocManaged(&values, 32 * sizeof(int));
  for (int i = 0; i < 32; ++i) packed[i].value = 3 * i;
  widen<<<1, 32>>>(pairs, doubles);
  unpack<<<1, 32>>>(packed, values);
  std::printf("%s, ", cudaGetErrorString(cudaDeviceSynchronize()));
  std::printf("%x %d\n", pairs[31], values[31]);
}
