// Objects that kernels allocate, use in a later launch and free. A word chooses a mistake.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <string>

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  __device__ explicit Square(int of) : side(of) {}
  __device__ int area() const override { return side * side; }
  int side;
};

__global__ void make(Shape** shapes, int** numbers) {
  shapes[threadIdx.x] = new Square(threadIdx.x);
  numbers[threadIdx.x] = static_cast<int*>(malloc(2 * sizeof(int)));
  numbers[threadIdx.x][0] = threadIdx.x;
}
__global__ void use(Shape** shapes, int** numbers, int* sum, int mistake) {
  atomicAdd(sum, shapes[threadIdx.x]->area());
  if (mistake == 1) atomicAdd(sum, numbers[threadIdx.x][2]);  // beyond
  if (mistake == 2) atomicAdd(sum, numbers[threadIdx.x][1]);  // unwritten
  atomicAdd(sum, numbers[threadIdx.x][0]);
}
__global__ void remove(Shape** shapes, int** numbers, int* left, int mistake) {
  delete shapes[threadIdx.x];
  free(numbers[threadIdx.x]);
  if (mistake == 3) *left = numbers[threadIdx.x][0];  // freed
  if (mistake == 4) free(numbers[threadIdx.x]);       // freed twice
  *left = malloc(size_t{9} << 20) == nullptr;
}

int main(int argc, char** argv) {
  const int count = 8, mistake = argc > 1 ? std::stoi(argv[1]) : 0;
  Shape** shapes;
  int **numbers, *sum, *left, *host;
  size_t limit = 0;
  cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
  cudaMalloc(&shapes, count * sizeof(Shape*));
  cudaMallocManaged(&numbers, count * sizeof(int*));
  cudaMallocManaged(&sum, sizeof(int));
  cudaMallocManaged(&left, sizeof(int));
  *sum = 0;
  make<<<1, count>>>(shapes, numbers);
  use<<<1, count>>>(shapes, numbers, sum, mistake);
  cudaDeviceSynchronize();
  host = numbers[1];
  if (mistake == 5) *sum = *host;  // on the host
  remove<<<1, count>>>(shapes, numbers, left, mistake);
  cudaDeviceSynchronize();
  std::printf("%zu MiB, sum %d, full %d\n", limit >> 20, *sum, *left);
}
