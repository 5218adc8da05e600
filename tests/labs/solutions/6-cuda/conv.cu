// A 3x3 convolution of one image, padding 1: y[k][h][w] = sum over c, i, j of
//   weights[k][c][i][j] * x[c][h + i - 1][w + j - 1],  x being 0 outside of the image.
// x: C x H x W, weights: K x C x 3 x 3, y: K x H x W, all row by row.
// SPDX-License-Identifier: Apache-2.0

constexpr int kTileWidth = 32, kTileHeight = 8;

/// Grid (ceil(W / 32), ceil(H / 8), K), blocks of 32 x 8: a thread has an output.
__global__ void naive(const float* x, const float* weights, float* y, int C, int K, int H, int W) {
  int w = blockIdx.x * blockDim.x + threadIdx.x;
  int h = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z;
  if (w >= W || h >= H) return;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        int row = h + i - 1, column = w + j - 1;
        if (row < 0 || row >= H || column < 0 || column >= W) continue;
        sum += weights[((k * C + c) * 3 + i) * 3 + j] * x[(c * H + row) * W + column];
      }
    }
  }
  y[(k * H + h) * W + w] = sum;
}

/// The same grid and blocks. The block keeps a channel's 34 x 10 inputs and 9 weights in shared
/// memory.
__global__ void tiled(const float* x, const float* weights, float* y, int C, int K, int H, int W) {
  __shared__ float tile[kTileHeight + 2][kTileWidth + 2];
  __shared__ float filter[9];
  int w = blockIdx.x * 32 + threadIdx.x;
  int h = blockIdx.y * 8 + threadIdx.y;
  int k = blockIdx.z;
  int thread = threadIdx.y * 32 + threadIdx.x;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int e = thread; e < (kTileHeight + 2) * (kTileWidth + 2); e += 256) {
      int row = e / (kTileWidth + 2), column = e % (kTileWidth + 2);
      int from_h = blockIdx.y * 8 + row - 1, from_w = blockIdx.x * 32 + column - 1;
      bool inside = from_h >= 0 && from_h < H && from_w >= 0 && from_w < W;
      tile[row][column] = inside ? x[(c * H + from_h) * W + from_w] : 0;
    }
    if (thread < 9) filter[thread] = weights[(k * C + c) * 9 + thread];
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        sum += filter[i * 3 + j] * tile[threadIdx.y + i][threadIdx.x + j];
      }
    }
    __syncthreads();
  }
  if (w < W && h < H) y[(k * H + h) * W + w] = sum;
}

/// Y = weights (K x 9C) times columns (9C x HW), whose element (c, i, j), (h, w) is an input and is
/// never stored. Grid (ceil(H W / 32), ceil(K / 32)), blocks of 32 x 8: a block has 32 x 32
/// outputs, a thread four of them, below each other.
__global__ void gemm(const float* x, const float* weights, float* y, int C, int K, int H, int W) {
  __shared__ float a[32][32];  // [channel out][depth]: a warp writes a row and reads one element
  __shared__ float b[32][32];  // [depth][position]
  int depth = 9 * C, positions = H * W;
  int position = blockIdx.x * 32 + threadIdx.x;
  int h = position / W, w = position % W;
  float sum[4] = {0, 0, 0, 0};
  for (int first = 0; first < depth; first += 32) {
    for (int row = threadIdx.y; row < 32; row += 8) {
      int k = blockIdx.y * 32 + row, at = first + threadIdx.x;
      a[row][threadIdx.x] = k < K && at < depth ? weights[k * depth + at] : 0;
      int d = first + row;
      int c = d / 9, i = d % 9 / 3, j = d % 3;
      int from_h = h + i - 1, from_w = w + j - 1;
      bool inside = d < depth && position < positions && from_h >= 0 && from_h < H && from_w >= 0 &&
                    from_w < W;
      b[row][threadIdx.x] = inside ? x[(c * H + from_h) * W + from_w] : 0;
    }
    __syncthreads();
    for (int d = 0; d < 32; ++d) {
      float column = b[d][threadIdx.x];
      for (int n = 0; n < 4; ++n) sum[n] += a[threadIdx.y + 8 * n][d] * column;
    }
    __syncthreads();
  }
  for (int n = 0; n < 4; ++n) {
    int k = blockIdx.y * 32 + threadIdx.y + 8 * n;
    if (k < K && position < positions) y[k * positions + position] = sum[n];
  }
}
