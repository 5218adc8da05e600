// Small kernels with costs that plain_costs_test.cpp has in closed form.
// SPDX-License-Identifier: Apache-2.0
__constant__ float table[64] = {1, 2, 3, 4, 5, 6, 7, 8};

// --- global memory and its caches

template <int kStep, int kFirst>
__global__ void strided(const float* x, float* y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x * kStep + kFirst];
}
template __global__ void strided<1, 0>(const float*, float*);
template __global__ void strided<0, 0>(const float*, float*);
template __global__ void strided<2, 0>(const float*, float*);
template __global__ void strided<4, 0>(const float*, float*);
template __global__ void strided<8, 0>(const float*, float*);
template __global__ void strided<16, 0>(const float*, float*);
template __global__ void strided<1, 1>(const float*, float*);

__global__ void vectors(const float4* x, float4* y) { y[threadIdx.x] = x[threadIdx.x]; }

// Four turns over the same 32 numbers.
__global__ void again(const float* x, float* y) {
  float sum = 0;
  for (int turn = 0; turn < 4; ++turn) sum += x[(threadIdx.x + 8 * turn) % 32];
  y[threadIdx.x] = sum;
}

// Two turns over `count` times 32 numbers.
__global__ void streamed(const float* x, float* y, int count) {
  float sum = 0;
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < count; ++i) sum += x[32 * i + threadIdx.x];
  }
  y[threadIdx.x] = sum;
}

__global__ void stored_and_loaded(float* x, float* y) {
  x[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = x[threadIdx.x ^ 1];
}

__global__ void stored_twice(float* x) {
  x[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x ^ 1] = 2;
}

// --- constant memory

__global__ void constant_of_all(float* y) { y[32 * blockIdx.x + threadIdx.x] = table[5]; }
__global__ void constant_of_lanes(float* y) { y[threadIdx.x] = table[threadIdx.x]; }
__global__ void constant_of_pairs(float* y) { y[threadIdx.x] = table[threadIdx.x / 2]; }
__global__ void constant_of_warps(float* y) { y[threadIdx.x] = table[threadIdx.x / 32]; }

// --- atomic operations

template <int kShare>
__global__ void atomic(int* y) {
  atomicAdd(&y[threadIdx.x / kShare], 1);
}
template __global__ void atomic<1>(int*);
template __global__ void atomic<2>(int*);
template __global__ void atomic<1024>(int*);

__global__ void atomic_in_eight(int* y) { atomicAdd(&y[threadIdx.x % 8], 1); }

template <int kShare>
__global__ void shared_atomic(int* y) {
  __shared__ int bins[64];
  bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[threadIdx.x / kShare], 1);
  __syncthreads();
  y[threadIdx.x] = bins[threadIdx.x];
}
template __global__ void shared_atomic<1>(int*);
template __global__ void shared_atomic<1024>(int*);

// --- shared memory

template <int kStep>
__global__ void shared_strided(float* y) {
  __shared__ float tile[33 * 32];
  tile[threadIdx.x * kStep] = 1;
  y[threadIdx.x] = tile[threadIdx.x * kStep];
}
template __global__ void shared_strided<1>(float*);
template __global__ void shared_strided<2>(float*);
template __global__ void shared_strided<32>(float*);
template __global__ void shared_strided<33>(float*);

// --- branches

__global__ void odd(float* y) {
  if (threadIdx.x % 2 == 1) y[threadIdx.x] = 1;  // odd lanes
}

__global__ void second_warp(float* y) {
  if (threadIdx.x >= 32) y[threadIdx.x] = 1;
}

__global__ void bounded(float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 1;
}

__global__ void sized(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1;
}

__global__ void nested(float* y) {
  if (threadIdx.x < 16) {
    if (threadIdx.x < 8) y[threadIdx.x] = 1;
  }
}

__global__ void turns(float* y) {
  for (int turn = 0; turn < threadIdx.x % 4; ++turn) y[4 * threadIdx.x + turn] = 1;
}

__global__ void returned(float* y, int n) {
  if (threadIdx.x >= n) return;
  y[threadIdx.x] = 1;
}

// The piece of code with the branch begins before lanes meet.
__global__ void after_barrier(float* y) {
  __syncthreads();
  if (threadIdx.x % 2 == 1) y[threadIdx.x] = 1;
}

__global__ void after_shuffle(float* y) {
  const int lane = __shfl_sync(~0U, threadIdx.x, threadIdx.x ^ 1);
  if (lane == 0) y[threadIdx.x] = 1;
}

__global__ void chain(float* y) {
  const unsigned kind = threadIdx.x % 4;
  if (kind == 0) {
    y[threadIdx.x] = 1;
  } else if (kind == 1) {
    y[threadIdx.x + 32] = 1;
  } else if (kind == 2) {
    y[threadIdx.x + 64] = 1;
  }
}

__noinline__ __device__ bool is_odd(unsigned v) { return v % 2 == 1; }
__noinline__ __device__ bool is_below(int v, int n) {
  if (n < 0) return false;
  return v < n;
}
__noinline__ __device__ void meet() { __syncthreads(); }

__global__ void behind_call(float* y) {
  if (is_odd(threadIdx.x)) y[threadIdx.x] = 1;
}

__global__ void behind_call_with_branch(float* y) {
  if (is_below(threadIdx.x, 16)) y[threadIdx.x] = 1;
}

__global__ void turns_of_calls(float* y) {
  for (int turn = 0; is_below(turn, threadIdx.x % 4); ++turn) y[4 * threadIdx.x + turn] = 1;
}

__global__ void behind_call_that_meets(float* y) {
  meet();
  if (threadIdx.x % 2 == 1) y[threadIdx.x] = 1;
}

// --- arithmetic

__global__ void axpy(const float* x, float* y, float a) {
  y[threadIdx.x] = a * x[threadIdx.x] + y[threadIdx.x];
}

__global__ void quotient(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] / 3; }

__global__ void of_doubles(const float* x, float* y) {
  y[threadIdx.x] = static_cast<float>(static_cast<double>(x[threadIdx.x]) * 1.1);
}

__global__ void exponential(const float* x, float* y) { y[threadIdx.x] = expf(x[threadIdx.x]); }

__global__ void square_of_odd(const float* x, float* y) {
  if (threadIdx.x % 2 == 1) y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x];
}

__global__ void polynomial(const float* x, float* y) {
  float value = 0;
  for (int turn = 0; turn < 8; ++turn) value = value * x[threadIdx.x] + 1;
  y[threadIdx.x] = value;
}
