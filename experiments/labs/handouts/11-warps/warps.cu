// Histogram, scan and compaction. All three are right and slow: count before you change them.
// SPDX-License-Identifier: Apache-2.0

/// bins[v] += the number of elements v of x, from 0 to 63. Grid ceil(n / 1024), blocks of 256: a
/// block has 1,024 elements, a thread four of them.
__global__ void histogram(const int* x, int* bins, int n) {
  for (int j = 0; j < 4; ++j) {
    int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
    if (i < n) atomicAdd(&bins[x[i]], 1);
  }
}

/// y[i] = the sum of x from the first element of i's block to i, sums[block] = the sum of the
/// block. Grid ceil(n / 256), blocks of 256: a thread has an element.
__global__ void scan(const int* x, int* y, int* sums, int n) {
  __shared__ int sum[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  sum[threadIdx.x] = i < n ? x[i] : 0;
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    int before = threadIdx.x >= step ? sum[threadIdx.x - step] : 0;
    __syncthreads();
    sum[threadIdx.x] += before;
  }
  if (i < n) y[i] = sum[threadIdx.x];
  if (threadIdx.x == 255) sums[blockIdx.x] = sum[255];
}

/// y = the positive elements of x, *count = their number. The elements of a warp stay neighbours in
/// y, in their order. Warps may come in any order. Grid ceil(n / 256), blocks of 256.
__global__ void compact(const int* x, int* y, int* count, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n && x[i] > 0) y[atomicAdd(count, 1)] = x[i];
}
