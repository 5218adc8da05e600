// Histogram, scan and compaction by the lanes of a warp.
// SPDX-License-Identifier: Apache-2.0

constexpr unsigned kAll = 0xffffffff;

/// bins[v] += the number of elements v of x, from 0 to 63. Grid ceil(n / 1024), blocks of 256: a
/// block has 1,024 elements, a thread four of them.
__global__ void histogram(const int* x, int* bins, int n) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  int lane = threadIdx.x % 32;
  for (int j = 0; j < 4; ++j) {
    int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
    int value = i < n ? x[i] : -1;
    // The lanes with the value of the first lane that is left are counted together.
    unsigned left = __ballot_sync(kAll, i < n);
    while (left != 0) {
      int leader = __ffs(left) - 1;
      unsigned same = __ballot_sync(kAll, value == __shfl_sync(kAll, value, leader));
      if (lane == leader) atomicAdd(&own[value], __popc(same));
      left &= ~same;
    }
  }
  __syncthreads();
  if (threadIdx.x < 64 && own[threadIdx.x] > 0) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

/// The sum of `value` over the lanes up to this one.
__device__ int warp_scan(int value) {
  int lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) {
    int before = __shfl_up_sync(kAll, value, step);
    if (lane >= step) value += before;
  }
  return value;
}

/// y[i] = the sum of x from the first element of i's block to i, sums[block] = the sum of the
/// block. Grid ceil(n / 256), blocks of 256: a thread has an element.
__global__ void scan(const int* x, int* y, int* sums, int n) {
  __shared__ int totals[8];
  int i = blockIdx.x * 256 + threadIdx.x;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int sum = warp_scan(i < n ? x[i] : 0);
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  // Each warp adds up the totals of the warps before it.
  int total = warp_scan(lane < 8 ? totals[lane] : 0);
  int before = __shfl_sync(kAll, total, (warp + 31) % 32);
  if (warp > 0) sum += before;
  if (i < n) y[i] = sum;
  if (threadIdx.x == 255) sums[blockIdx.x] = sum;
}

/// y = the positive elements of x, *count = their number. The elements of a warp stay neighbours in
/// y, in their order. Warps may come in any order. Grid ceil(n / 256), blocks of 256.
__global__ void compact(const int* x, int* y, int* count, int n) {
  __shared__ int begins[8];
  int i = blockIdx.x * 256 + threadIdx.x;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int value = i < n ? x[i] : 0;
  unsigned kept = __ballot_sync(kAll, value > 0);
  if (lane == 0) begins[warp] = __popc(kept);
  __syncthreads();
  if (warp == 0) {
    int own = lane < 8 ? begins[lane] : 0;
    int sum = warp_scan(own);
    int first = lane == 31 ? atomicAdd(count, sum) : 0;
    first = __shfl_sync(kAll, first, 31);
    if (lane < 8) begins[lane] = first + sum - own;
  }
  __syncthreads();
  if (value > 0) y[begins[warp] + __popc(kept & ((1u << lane) - 1))] = value;
}
