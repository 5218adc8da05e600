// Blocks outside of a sample run without instrumentation and give the same bits: variables and
// functions of all kinds, waits for other threads, printf, and mistakes that end the program.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define BLOCKS 6
#define THREADS 96

__constant__ float factors[3] = {0.5f, 1.5f, -2.25f};
__device__ int visits;
static __device__ float table[2] = {3, 4};
__device__ const int kPrimes[4] = {2, 3, 5, 7};

struct Shape {
  __device__ virtual float area(float x) const { return x; }
};
struct Circle : Shape {
  __device__ float area(float x) const override { return 3.14159f * x * x; }
};

__device__ float twice(float x) { return 2 * x; }
static __device__ float root(float x) { return sqrtf(fabsf(x)); }
__device__ float (*functions[2])(float) = {twice, root};

template <class T, int kSize>
__device__ T block_sum(T value) {
  __shared__ T parts[kSize];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < kSize; ++i) sum += parts[i];
  __syncthreads();
  return sum;
}

__device__ int next_number() {
  static int number = 100;
  return atomicAdd(&number, 1);
}

/// Rounded products and sums, and functions of the C library.
__global__ void compute(float* y, int rows) {
  extern __shared__ float row[];
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  float x = 0.001f * at + factors[at % 3];
  for (int i = 0; i < rows; ++i) {
    x = 0.5f * x * factors[i % 3] + sinf(x) / (1.0f + expf(-x)) + powf(2.0f, 0.1f * x);
  }
  row[threadIdx.x] = x + std::cos(0.3f) + kPrimes[at % 4];
  __syncthreads();
  const Circle circle;
  const Shape* shape = &circle;
  x = row[THREADS - 1 - threadIdx.x] + shape->area(x) + table[at & 1];
  float (*local)(float) = threadIdx.x & 2 ? root : twice;
  y[at] = functions[at & 1](x) + local(x) + block_sum<double, THREADS / 32>(x);
  if (threadIdx.x == 0) atomicAdd(&visits, 1);
  if (threadIdx.x == 1) atomicMax(&visits, -next_number());
}

/// A lock of all threads, and a flag that another warp sets.
__global__ void take_turns(int* lock, int* count, volatile int* flags) {
  for (bool waits = true; waits;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      atomicExch(count, atomicAdd(count, 0) + 1);
      atomicExch(lock, 0);
      waits = false;
    }
  }
  volatile int* flag = flags + blockIdx.x;
  if (threadIdx.x == 0) {
    while (*flag == 0) {
    }
    *flag = 2;
  }
  if (threadIdx.x == 64) *flag = 1;
}

__global__ void print_number(int least) {
  if (threadIdx.x == 0 && blockIdx.x >= least) printf("block %d\n", blockIdx.x);
}

__global__ void mistake(int kind, int* array, volatile int* flag) {
  if (blockIdx.x != 2 || threadIdx.x != 5) return;
  if (kind == 0) assert(array != nullptr);  // assert
  if (kind == 1) array[threadIdx.x] = 1;    // crash
  unsigned number = threadIdx.x;
  while (kind == 2) number = number * 3 + 1;  // endless
  while (kind == 3 && *flag == 0) {           // wait
  }
  if (kind == 4) number /= *flag;  // division
  *flag = number;
}

int main(int count, char** words) {
  const int size = BLOCKS * THREADS;
  float* y;
  int* counters;
  cudaMalloc(&y, size * sizeof(float));
  cudaMalloc(&counters, (2 + BLOCKS) * sizeof(int));
  cudaMemset(counters, 0, (2 + BLOCKS) * sizeof(int));
  if (count > 1) mistake<<<4, 32>>>(atoi(words[1]), nullptr, counters);
  compute<<<BLOCKS, THREADS, THREADS * sizeof(float)>>>(y, 20);
  take_turns<<<BLOCKS, THREADS>>>(counters, counters + 1, counters + 2);
  print_number<<<BLOCKS, 32>>>(BLOCKS - 2);
  static float numbers[BLOCKS * THREADS];
  int counts[2 + BLOCKS], visited;
  cudaMemcpy(numbers, y, sizeof numbers, cudaMemcpyDeviceToHost);
  cudaMemcpy(counts, counters, sizeof counts, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&visited, visits, sizeof visited);
  unsigned long long bits = 1469598103934665603ull;
  for (float number : numbers) {
    unsigned word;
    memcpy(&word, &number, sizeof word);
    bits = (bits ^ word) * 1099511628211ull;
  }
  int set = 0;
  for (int i = 0; i < BLOCKS; ++i) set += counts[2 + i] == 2;
  printf("%016llx, %d visits, %d turns, %d flags\n", bits, visited, counts[1], set);
}
