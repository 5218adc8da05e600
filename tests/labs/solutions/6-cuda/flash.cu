// Attention of one head of 32 columns: out = softmax(scale * q k^T) v, row by row; q, k, v and out
// are n x 32. Grid ceil(n / 64), blocks of 64: a thread has a query.
// SPDX-License-Identifier: Apache-2.0

constexpr int kColumns = 32, kQueries = 64, kKeys = 32;

/// Rows of 32 numbers, `count` of them, from global to shared memory, a warp a row.
__device__ void load_rows(const float* from, float (*to)[kColumns + 1], int first, int count,
                          int n) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int row = warp; row < count; row += 2) {
    to[row][lane] = first + row < n ? from[(first + row) * kColumns + lane] : 0;
  }
}

__global__ void flash(const float* q, const float* k, const float* v, float* out, int n,
                      float scale) {
  __shared__ float own[kQueries][kColumns + 1];  // 33: a column lies in 32 banks
  __shared__ float keys[kKeys][kColumns + 1], values[kKeys][kColumns + 1];
  int first = blockIdx.x * kQueries;
  load_rows(q, own, first, kQueries, n);
  __syncthreads();
  float query[kColumns], sum[kColumns];
  for (int d = 0; d < kColumns; ++d) {
    query[d] = own[threadIdx.x][d] * scale;
    sum[d] = 0;
  }
  float largest = -INFINITY, weight = 0;
  for (int tile = 0; tile < n; tile += kKeys) {
    __syncthreads();
    load_rows(k, keys, tile, kKeys, n);
    load_rows(v, values, tile, kKeys, n);
    __syncthreads();
    int there = n - tile < kKeys ? n - tile : kKeys;
    for (int key = 0; key < there; ++key) {
      float score = 0;
      for (int d = 0; d < kColumns; ++d) score += query[d] * keys[key][d];
      float now = fmaxf(largest, score);
      float keep = expf(largest - now), add = expf(score - now);
      largest = now;
      weight = weight * keep + add;
      for (int d = 0; d < kColumns; ++d) sum[d] = sum[d] * keep + add * values[key][d];
    }
  }
  for (int d = 0; d < kColumns; ++d) own[threadIdx.x][d] = sum[d] / weight;
  __syncthreads();
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int row = warp; row < kQueries; row += 2) {
    if (first + row < n) out[(first + row) * kColumns + lane] = own[row][lane];
  }
}
