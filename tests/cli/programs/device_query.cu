// Asks for properties of the device and for the occupancy of a kernel.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <iostream>

__global__ void fill(int* data, int n, int value) {
  extern __shared__ int scratch[];
  scratch[threadIdx.x] = value;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = scratch[threadIdx.x];
}

__global__ void tiled(int* data) {
  __shared__ int tile[10000];
  __shared__ int sums[4];
  tile[threadIdx.x] = sums[threadIdx.x % 4] = 1;
  data[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  int count = 0, driver = 0, most = 0, processors = 0;
  cudaGetDeviceCount(&count);
  cudaDriverGetVersion(&driver);
  cudaSetDevice(0);
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerBlock, 0);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  std::cout << count << " device: " << prop.name << ", compute capability " << prop.major << "."
            << prop.minor << ", " << processors << " multiprocessors, " << most << " threads"
            << std::endl;
  int grid = 0, block = 0, blocks = 0;
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill, 0, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 64 * 1024);
  std::cout << "block of " << block << ", with 64 KiB " << blocks << " blocks" << std::endl;
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, tiled);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tiled, 256, 0);
  std::cout << "tiled " << attributes.sharedSizeBytes << " bytes, " << blocks << " blocks"
            << std::endl;
  cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024);
  int* data;
  cudaMalloc(&data, 1000 * sizeof(int));
  fill<<<4, 256, 64 * 1024>>>(data, 1000, 5);
  int last = 0;
  cudaMemcpy(&last, data + 999, sizeof(int), cudaMemcpyDeviceToHost);
  std::cout << "last " << last << ", " << cudaGetErrorName(cudaGetLastError()) << std::endl;
  cudaFree(data);
}
