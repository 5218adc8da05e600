// A linked structure in managed memory, which the host builds and kernels walk and change.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <new>

struct Managed {
  void* operator new(size_t bytes) {
    void* pointer;
    if (cudaMallocManaged(&pointer, bytes) != cudaSuccess) throw std::bad_alloc();
    return pointer;
  }
  void operator delete(void* pointer) { cudaFree(pointer); }
};

struct Node : Managed {
  int value = 0;
  Node* next = nullptr;
  __host__ __device__ Node(int v, Node* n) : value(v), next(n) {}
  __host__ __device__ int doubled() const { return 2 * value; }
};

__global__ void walk(Node* first, int* sum) {
  int total = 0;
  for (Node* node = first; node != nullptr; node = node->next) {
    total += node->doubled();
    node->value = -node->value;
  }
  *sum = total;
}

int main() {
  Node* first = nullptr;
  for (int i = 1; i <= 5; ++i) first = new Node(i, first);
  int* sum;
  cudaMallocManaged(&sum, sizeof(int), cudaMemAttachGlobal);
  cudaMemPrefetchAsync(sum, sizeof(int), 0);
  walk<<<1, 1>>>(first, sum);
  cudaDeviceSynchronize();
  printf("sum %d, values", *sum);
  while (first != nullptr) {
    printf(" %d", first->value);
    Node* next = first->next;
    delete first;
    first = next;
  }
  printf("\n");
  cudaFree(sum);
}
