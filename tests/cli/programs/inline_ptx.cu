// Inline PTX of integers: special registers, arithmetic, bits, memory, shuffles, votes, barriers.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>

__device__ unsigned lane() {
  unsigned number;
  asm("mov.u32 %0, %%laneid;" : "=r"(number));
  return number;
}

__global__ void calculate(unsigned* out, int a, unsigned b) {
  unsigned at, x, y, z;
  asm volatile("mad.lo.u32 %0, %1, %2, %3;" : "=r"(at) : "r"(blockIdx.x), "r"(0), "r"(lane()));
  asm("lop3.b32 %0, %1, %2, %3, 0xCA;" : "=r"(x) : "r"(0xFF00FF00), "r"(b), "r"(~b));
  asm("bfe.s32 %0, %1, 4, %2;" : "=r"(y) : "r"(a), "n"(8));
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(z) : "r"(b), "r"(0x01020304), "r"(5));
  if (at == 0) {
    out[0] = x;
    out[1] = y;
    out[2] = z;
    asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(x) : "r"(0xF), "r"(b));
    asm("prmt.b32 %0, %1, %2, 0x0123;" : "=r"(y) : "r"(b), "r"(0));
    asm("bfind.u32 %0, %1;" : "=r"(z) : "r"(b));
    out[3] = x;
    out[4] = y;
    out[5] = z;
    unsigned long long wide, clock;
    asm("mul.wide.u32 %0, %1, %1;" : "=l"(wide) : "r"(b));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(clock));
    out[6] = static_cast<unsigned>(wide >> 32);
    out[7] = clock != 0;
  }
}

/// The sum of a warp, and the lanes with an odd number.
__global__ void warp(const int* values, int* out) {
  int value, other;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(value) : "l"(values + threadIdx.x) : "memory");
  for (int step = 16; step > 0; step /= 2) {
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=r"(other)
                 : "r"(value), "r"(step));
    value += other;
  }
  unsigned votes;
  asm volatile("vote.sync.ballot.b32 %0, %1, 0xffffffff;" : "=r"(votes) : "r"(threadIdx.x & 1));
  asm volatile("bar.sync 0;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("st.global.s32 [%0], %1;" ::"l"(out), "r"(value) : "memory");
    asm volatile("membar.gl;" ::: "memory");
    out[1] = static_cast<int>(votes);
  }
}

int main() {
  unsigned* words;
  int *values, *sums;
  cudaMallocManaged(&words, 8 * sizeof(unsigned));
  cudaMallocManaged(&values, 32 * sizeof(int));
  cudaMallocManaged(&sums, 2 * sizeof(int));
  for (int i = 0; i < 32; ++i) values[i] = i * i;
  calculate<<<1, 32>>>(words, -1000, 0x12345678);
  warp<<<1, 32>>>(values, sums);
  cudaDeviceSynchronize();
  for (int i = 0; i < 8; ++i) std::printf("%08x ", words[i]);
  std::printf("%d %08x\n", sums[0], static_cast<unsigned>(sums[1]));
}
