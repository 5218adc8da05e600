// A 3x3 convolution of one image, padding 1: y[k][h][w] = sum over c, i, j of
//   weights[k][c][i][j] * x[c][h + i - 1][w + j - 1],  x being 0 outside of the image.
// x: C x H x W, weights: K x C x 3 x 3, y: K x H x W, all row by row.
// SPDX-License-Identifier: Apache-2.0

/// Grid (ceil(W / 32), ceil(H / 8), K), blocks of 32 x 8: a thread has an output. Right, but slow:
/// look which output the lane next to this one has.
__global__ void naive(const float* x, const float* weights, float* y, int C, int K, int H, int W) {
  int thread = threadIdx.y * 32 + threadIdx.x;
  int w = blockIdx.x * 32 + thread / 8;
  int h = blockIdx.y * 8 + thread % 8;
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

/// The same grid and blocks. Channel by channel, the block keeps the 34 x 10 inputs of its outputs
/// and the 9 weights in shared memory.
__global__ void tiled(const float* x, const float* weights, float* y, int C, int K, int H, int W) {
  // Yours.
}

/// Y = weights (K x 9C) times columns (9C x HW). The element of the columns in row (c, i, j) and
/// column (h, w) is an input. It is never stored in global memory. Grid (ceil(H W / 32), ceil(K /
/// 32)), blocks of 32 x 8: a block has 32 channels of 32 outputs, a thread four of them.
__global__ void gemm(const float* x, const float* weights, float* y, int C, int K, int H, int W) {
  // Yours.
}
