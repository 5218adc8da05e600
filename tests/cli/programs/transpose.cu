// Transposes a matrix by one of several kernels, chosen by a pointer, and times them with events.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

constexpr int kTile = 32, kRows = 8;

__global__ void naive(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int i = 0; i < kTile; i += kRows) out[x * height + y + i] = in[(y + i) * width + x];
}

template <int kPadding>
__global__ void tiled(float* out, const float* in, int width, int height) {
  __shared__ float tile[kTile][kTile + kPadding];
  int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int i = 0; i < kTile; i += kRows)
    tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
  __syncthreads();
  x = blockIdx.y * kTile + threadIdx.x;
  y = blockIdx.x * kTile + threadIdx.y;
  for (int i = 0; i < kTile; i += kRows)
    out[(y + i) * height + x] = tile[threadIdx.x][threadIdx.y + i];
}

int main() {
  const int width = 64, height = 32;
  std::vector<float> in(width * height), out(width * height);
  for (int i = 0; i < width * height; ++i) in[i] = i;
  float *d_in, *d_out;
  cudaMalloc(&d_in, in.size() * sizeof(float));
  cudaMalloc(&d_out, out.size() * sizeof(float));
  cudaMemcpy(d_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  void (*kernel)(float*, const float*, int, int) = nullptr;
  const char* names[] = {"naive", "tiled<0>", "tiled<1>"};
  dim3 gridDim(width / kTile, height / kTile), blockDim(kTile, kRows, 1);
  for (int which = 0; which < 3; ++which) {
    if (which == 0) kernel = &naive;
    if (which == 1) kernel = &tiled<0>;
    if (which == 2) kernel = &tiled<1>;
    cudaMemset(d_out, 0, out.size() * sizeof(float));
    cudaEventRecord(start, 0);
    kernel<<<gridDim, blockDim>>>(d_out, d_in, width, height);
    cudaEventRecord(stop, 0);
    cudaEventSynchronize(stop);
    float milliseconds = -1;
    cudaEventElapsedTime(&milliseconds, start, stop);
    cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) wrong += out[x * height + y] != in[y * width + x];
    }
    printf("%s: %d wrong, %s\n", names[which], wrong, milliseconds >= 0 ? "timed" : "not timed");
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  cudaFree(d_in);
  cudaFree(d_out);
}
