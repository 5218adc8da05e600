// Kernels with one mistake each. The line of the mistake ends with its name.
// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <cuda_runtime.h>
#include <stdlib.h>

#include <vector>

__global__ void shared_race(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = tile[63 - threadIdx.x];  // shared race: no barrier
}

__global__ void overwritten(const float* x, float* y) {
  __shared__ float tile[64];
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    tile[threadIdx.x] = x[threadIdx.x + i];  // overwritten: others still read
    __syncthreads();
    sum += tile[63 - threadIdx.x];
  }
  y[threadIdx.x] = sum;
}

__global__ void global_race(float* y) {
  y[threadIdx.x] = threadIdx.x;
  const float neighbour = y[(threadIdx.x + 1) % blockDim.x];  // global race: no barrier
  __syncthreads();
  y[threadIdx.x] = neighbour;
}

__global__ void between_blocks(float* total) {
  if (threadIdx.x == 0) *total += 1;  // between blocks: no atomicAdd
}

__global__ void lost_update(int* counter) {
  *counter = *counter + 1;  // lost update: no atomicAdd
}

__global__ void null_pointer(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x];  // null pointer
}

__global__ void wild_pointer(float* y) {
  float* p = reinterpret_cast<float*>(0x123456789000);
  y[threadIdx.x] = p[threadIdx.x];  // wild pointer
}

__global__ void beyond_array(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * x[i];  // beyond array: no i < n
}

__global__ void beyond_tile(const float* x, float* y) {
  __shared__ float tile[2][32];
  for (int i = 0; i <= 32; ++i) tile[0][i] = x[0];  // beyond tile
  y[0] = tile[0][0];
}

__global__ void beyond_dynamic(float* y) {
  extern __shared__ float part[];
  part[threadIdx.x] = 1;  // beyond dynamic
  y[threadIdx.x] = part[threadIdx.x];
}

__global__ void uninitialised(float* y) {
  __shared__ float tile[64];
  if (threadIdx.x < 32) tile[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];  // uninitialised
}

__global__ void divergent_barrier(float* y) {
  if (threadIdx.x < 16) return;
  __syncthreads();  // divergent barrier
  y[threadIdx.x] = 1;
}

__global__ void two_barriers(float* y) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();  // two barriers
  }
  y[threadIdx.x] = 1;
}

__global__ void missing_lane(float* y) {
  float value = threadIdx.x;
  if (threadIdx.x < 16) value += __shfl_down_sync(0xffffffff, value, 1);  // missing lane
  y[threadIdx.x] = value;
}

__global__ void endless(int* y) {
  int value = threadIdx.x;
  while (value >= 0) value = (value + 1) % 7;  // endless: without memory
  y[0] = value;
}

__global__ void endless_read(const int* flag, int* y) {
  while (*flag == 0) {  // endless read
  }
  y[0] = 1;
}

__global__ void division(const int* x, int* y) {
  y[threadIdx.x] = 7 / x[threadIdx.x];  // division
}

__device__ int deeper(int n, const int* x) {
  int local[64];
  for (int i = 0; i < 64; ++i) local[i] = n + x[0];
  return n == 0 ? local[3] : deeper(n - 1, x) + local[n % 64];
}
__global__ void stack_overflow(const int* x, int* y) { y[0] = deeper(x[1], x); }

__global__ void misaligned(const float* x, float4* y) {
  y[threadIdx.x] = *reinterpret_cast<const float4*>(x + threadIdx.x);  // misaligned
}

__global__ void asserted(const int* x) {
  assert(x[threadIdx.x] > 0);  // asserted
}

__constant__ int table[4];
__global__ void constant_written(int* y) {
  const_cast<volatile int*>(table)[0] = y[0];  // constant written
}

__global__ void beyond_local(const int* x, int* y) {
  int local[4] = {1, 2, 3, 4};
  y[0] = local[x[0]];  // beyond local
}

__device__ unsigned arrived;
__global__ void without_fence(const float* x, float* parts, float* y) {
  parts[blockIdx.x] = x[blockIdx.x];
  if (atomicInc(&arrived, gridDim.x - 1) != gridDim.x - 1) return;
  float sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += parts[i];  // without fence
  *y = sum;
}

__global__ void not_zeroed(const float* x, float* y) {
  if (threadIdx.x == 0) y[0] = 0;
  y[threadIdx.x] += x[threadIdx.x];  // not zeroed
}

__global__ void counted(int* count) {
  atomicAdd(count, 1);  // counted
}

// Calls of the host's functions: nvcc refuses them at once.
#ifndef __CUDACC__
__global__ void exits(float* y) {
  if (threadIdx.x == 3) exit(0);  // exits
  y[threadIdx.x] = 1;
}

__global__ void aborts(float* y) {
  if (threadIdx.x == 3) abort();  // aborts
  y[threadIdx.x] = 1;
}

__global__ void throws(float* y) {
  if (threadIdx.x == 3) throw 1;  // throws
  y[threadIdx.x] = 1;
}

__global__ void allocates(float* y) {
  float* p = static_cast<float*>(malloc(16));  // allocates
  y[threadIdx.x] = p[0];
}

__global__ void with_a_vector(float* y) {
  std::vector<float> values(3);
  y[threadIdx.x] = values[0];
}
#endif

__global__ void large_local(const float* x, float* y) {
  float values[1 << 20];
  for (int i = 0; i < 1 << 20; i += 512) values[i] = x[0];
  y[threadIdx.x] = values[static_cast<int>(x[1])];
}

__noinline__ __device__ float large_sum(const float* x) {
  float values[1 << 20];
  values[0] = x[0];
  return values[0] + values[static_cast<int>(x[1]) - 1];
}

__global__ void large_callee(const float* x, float* y) {
  __syncthreads();
  if (threadIdx.x == 0) y[0] = large_sum(x);
}
