// Kernels with every kind of parameter: structures in registers and on the stack, lambdas, classes
// with copies of their own, many arguments; three-dimensional grids.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <tuple>

struct Mixed {
  char letter;
  double real;
};
struct Padded {
  char first;
  float second;
  short third;
};
struct Large {
  int values[10];
  bool flag;
};
struct Counted {
  int value;
  explicit Counted(int v) : value(v) {}
  __host__ __device__ Counted(const Counted& other) : value(other.value + 1) {}
};
enum class Color : unsigned char { Red = 3, Blue = 250 };

__global__ void many(double* out, Mixed mixed, float3 three, Padded padded, bool yes, bool no,
                     Color color, Large large, short small, long long big, float2 pair,
                     double4 four, unsigned char byte, float single, double real, Counted counted,
                     const int* null) {
  large.values[9] += 1;  // a copy of the thread's own
  const double values[] = {double(mixed.letter),
                           mixed.real,
                           three.x,
                           three.z,
                           double(padded.first),
                           padded.second,
                           double(padded.third),
                           double(yes),
                           double(no),
                           double(static_cast<int>(color)),
                           double(large.values[9]),
                           double(large.flag),
                           double(small),
                           double(big),
                           pair.y,
                           four.w,
                           double(byte),
                           single,
                           real,
                           double(counted.value),
                           null == nullptr ? 1.0 : 0.0};
  for (int i = 0; i < 21; ++i) out[i] = values[i];
}

template <class F>
__global__ void for_each(int* out, dim3 size, F function) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
            z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < size.x && y < size.y && z < size.z) {
    const int i = (z * size.y + y) * size.x + x;
    out[i] = function(x, y, z);
  }
}

int main() {
  double *d, host[21];
  cudaMalloc(&d, sizeof(host));
  many<<<1, 1>>>(d, Mixed{'A', 1.5}, make_float3(1, 2, 3), Padded{'B', 2.5f, -7}, true, false,
                 Color::Blue, Large{{0, 1, 2, 3, 4, 5, 6, 7, 8, 41}, true}, short(-300), 1LL << 40,
                 make_float2(4, 5), make_double4(6, 7, 8, 9), 255, 0.25f, -0.125, Counted(6),
                 nullptr);
  cudaMemcpy(host, d, sizeof(host), cudaMemcpyDeviceToHost);
  for (double value : host) printf("%g ", value);
  printf("\n");
  const dim3 size(5, 4, 3);
  int* cells;
  cudaMalloc(&cells, 60 * sizeof(int));
  const int factor = 100;
  auto code = [=] __host__ __device__(int x, int y, int z) { return factor * z + 10 * y + x; };
  for_each<<<dim3(3, 2, 2), dim3(2, 2, 2)>>>(cells, size, code);
  int all[60], wrong = 0;
  cudaMemcpy(all, cells, sizeof(all), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 60; ++i) wrong += all[i] != code(i % 5, i / 5 % 4, i / 20);
  printf("%d wrong\n", wrong);
  cudaFree(d);
  cudaFree(cells);
}
