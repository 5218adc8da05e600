// Warps, votes, atomic operations and arithmetic: the words of plain CUDA at work.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <stdio.h>

__device__ float twice(float v) { return v + v; }

/// The sum of a block by shuffles and shared memory, added to y by one thread of each block.
__global__ void sum(const float* x, float* y, int n) {
  __shared__ float part[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = i < n ? x[i] : 0.0f;
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < blockDim.x / 32; ++warp) value += part[warp];
    atomicAdd(y, value);
  }
}

__global__ void histogram(const int* x, int* counts, int n, int bins) {
  extern __shared__ int local[];
  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) local[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[x[i] % bins], 1);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) atomicAdd(&counts[bin], local[bin]);
}

__global__ void votes(const int* x, unsigned* y) {
  const unsigned all = 0xffffffffu;
  const int value = x[threadIdx.x];
  const unsigned ballot = __ballot_sync(all, value > 0);
  const int any = __any_sync(all, value > 1), every = __all_sync(all, value >= 0);
  const int other = __shfl_xor_sync(all, value, 1), first = __shfl_sync(all, value, 0);
  __syncwarp();
  y[threadIdx.x] = ballot ^ (any + 2 * every + 4 * (other + first) + __popc(ballot));
}

/// One line of a matrix normalised by its largest value: exp, max and division.
__global__ void softmax(const float* x, float* y, int columns) {
  const float* line = x + blockIdx.x * columns;
  float most = -INFINITY, total = 0;
  for (int i = 0; i < columns; ++i) most = fmaxf(most, line[i]);
  for (int i = 0; i < columns; ++i) total += expf(line[i] - most);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[blockIdx.x * columns + i] = expf(line[i] - most) / total;
  }
}

/// a * b + c with one rounding and, written out, with two.
__global__ void contracted(const float* a, const float* b, const float* c, float* once,
                           float* twice_rounded) {
  const int i = threadIdx.x;
  once[i] = a[i] * b[i] + c[i];
  twice_rounded[i] = __fadd_rn(__fmul_rn(a[i], b[i]), c[i]);
}

struct Pair {
  float first;
  int second;
};

/// Structs, min and max of unlike types, local arrays, one printed line.
__global__ void mixed(const Pair* x, float* y, unsigned n, bool negate) {
  const unsigned i = min(blockIdx.x * blockDim.x + threadIdx.x, n - 1);
  const Pair pair = x[i];
  float local[4];
  for (int k = 0; k < 4; ++k) local[k] = pair.first * k;
  float value = twice(local[pair.second & 3]) + max(pair.second, 2);
  if (negate) value = -value;
  y[i] = value;
  if (i == 0) printf("first %g\n", value);
}

__device__ unsigned arrived;

/// Blocks add up their parts. The last one to arrive, which an atomic operation behind a fence
/// tells it that it is, adds up those.
__global__ void last_block(const float* x, float* parts, float* y) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = x[blockIdx.x];
    __threadfence();
    is_last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
    *y = sum;
  }
}
