// A filter with coefficients in constant memory, over rows of pitched memory.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

#define RADIUS 2

__constant__ float filter[2 * RADIUS + 1];
__constant__ struct { float scale, offset; } adjustment;

namespace {

__device__ __forceinline__ int clamp_to(int value, int low, int high) {
  return min(max(value, low), high);
}

__global__ void rows(const float* in, float* out, int width, int height, size_t pitch) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float* row = (const float*)((const char*)in + y * pitch);
  float sum = 0;
  for (int k = -RADIUS; k <= RADIUS; ++k)
    sum += filter[k + RADIUS] * row[clamp_to(x + k, 0, width - 1)];
  ((float*)((char*)out + y * pitch))[x] = fmaf(sum, adjustment.scale, adjustment.offset);
}

}  // namespace

int main() {
  const int width = 40, height = 6;
  std::vector<float> image(width * height), result(width * height);
  for (int i = 0; i < width * height; ++i) image[i] = i % 7;
  const float coefficients[] = {1, 2, 3, 2, 1}, adjust[] = {0.5f, 1};
  cudaMemcpyToSymbol(filter, coefficients, sizeof(coefficients));
  cudaMemcpyToSymbol(adjustment, adjust, sizeof(adjust));
  float *in, *out;
  size_t pitch, pitch_out;
  cudaMallocPitch(&in, &pitch, width * sizeof(float), height);
  cudaMallocPitch((void**)&out, &pitch_out, width * sizeof(float), height);
  cudaMemcpy2D(in, pitch, image.data(), width * sizeof(float), width * sizeof(float), height,
               cudaMemcpyHostToDevice);
  const dim3 block(16, 4), grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
  rows<<<grid, block>>>(in, out, width, height, pitch);
  cudaMemcpy2D(result.data(), width * sizeof(float), out, pitch_out, width * sizeof(float), height,
               cudaMemcpyDeviceToHost);
  float worst = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float sum = 0;
      for (int k = -RADIUS; k <= RADIUS; ++k) {
        sum +=
            coefficients[k + RADIUS] * image[y * width + std::min(std::max(x + k, 0), width - 1)];
      }
      worst = std::fmax(worst, std::fabs(result[y * width + x] - (0.5f * sum + 1)));
    }
  }
  printf("largest error %g\n", worst);
  cudaFree(in);
  cudaFree(out);
}
