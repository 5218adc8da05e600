#!/usr/bin/env python3
"""Speed of the emulated GPU for whole files: lane accesses per processor second of kernels whose warps stay together.

  emulator_speed.py PROGRAM...    [--size 4] [--repeats 3]

Several programs take turns. Each number is the best of the repeats. A lane access is one access of one thread to
global or shared memory, as the program counts it. The seconds are those of the launch, with its report, by the clock
of the process. Compilers do not count.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# Prints a line for each kernel with the seconds of its launch, then the number of wrong results.
SOURCE = r"""
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#define TILE 16
#define BINS 256

__global__ void vector_add(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

__global__ void matmul_naive(const float* a, const float* b, float* c, int size) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < size; ++k) sum += a[row * size + k] * b[k * size + column];
  c[row * size + column] = sum;
}

__global__ void matmul_tiled(const float* a, const float* b, float* c, int size) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int tile = 0; tile < size; tile += TILE) {
    left[threadIdx.y][threadIdx.x] = a[row * size + tile + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * size + column];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * size + column] = sum;
}

__global__ void reduction(const float* x, float* sum, int count) {
  __shared__ float warps[32];
  float mine = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    mine += x[i];
  }
  for (int delta = 16; delta > 0; delta /= 2) mine += __shfl_down_sync(~0u, mine, delta);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  mine = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0f;
  for (int delta = 16; delta > 0; delta /= 2) mine += __shfl_down_sync(~0u, mine, delta);
  if (threadIdx.x == 0) atomicAdd(sum, mine);
}

__global__ void histogram(const unsigned* x, unsigned* bins, int count) {
  __shared__ unsigned local[BINS];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[x[i] % BINS], 1u);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

template <class Launch>
static void measure(const char* name, const Launch& launch) {
  const clock_t begin = clock();
  launch();
  cudaDeviceSynchronize();
  printf("%s %.6f\n", name, (double)(clock() - begin) / CLOCKS_PER_SEC);
}

static float* ones(int count) {
  float *host = (float*)malloc(count * sizeof(float)), *device = nullptr;
  for (int i = 0; i < count; ++i) host[i] = 1.0f;
  cudaMalloc(&device, count * sizeof(float));
  cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyHostToDevice);
  free(host);
  return device;
}

static int differ(const float* device, int count, float expected) {
  float* host = (float*)malloc(count * sizeof(float));
  cudaMemcpy(host, device, count * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += host[i] != expected;
  free(host);
  return wrong;
}

int main(int, char** arguments) {
  const int size = 32 * atoi(arguments[1]), count = size * size * 8, threads = 256;
  float *a = ones(count), *b = ones(count), *c = ones(count), *sum = ones(1);
  unsigned* bins;
  cudaMalloc(&bins, BINS * sizeof(unsigned));
  cudaMemset(bins, 0, BINS * sizeof(unsigned));
  const dim3 grid(size / TILE, size / TILE), block(TILE, TILE);
  int wrong = 0;
  measure("vector_add", [&] { vector_add<<<count / threads, threads>>>(a, b, c, count); });
  wrong += differ(c, count, 2.0f);
  measure("matmul_naive", [&] { matmul_naive<<<grid, block>>>(a, b, c, size); });
  wrong += differ(c, size * size, (float)size);
  measure("matmul_tiled", [&] { matmul_tiled<<<grid, block>>>(a, b, c, size); });
  wrong += differ(c, size * size, (float)size);
  measure("reduction", [&] { reduction<<<32, threads>>>(a, sum, count); });
  wrong += differ(sum, 1, (float)count + 1.0f);
  measure("histogram", [&] { histogram<<<32, threads>>>((const unsigned*)a, bins, count); });
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
"""


def speeds(program, source, size):
    """Million lane accesses per processor second, by kernel."""
    done = subprocess.run([program, "kernel", "run", source, "--json", "--", str(size)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} failed with code {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    report = json.loads(done.stdout)["results"][0]
    seconds = dict(line.split() for line in report["output"].splitlines())
    return {kernel["kernel"]: sum(line["lanes"] for line in kernel["lines"]) / float(seconds[kernel["kernel"]]) / 1e6
            for kernel in report["kernels"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--size", type=int, default=4, help="of the matrices, in units of 32")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    best = [{} for _ in options.programs]
    with tempfile.TemporaryDirectory(prefix="triptych-speed-") as folder:
        source = pathlib.Path(folder) / "speed.cu"
        source.write_text(SOURCE)
        for _ in range(options.repeats):
            for program, row in zip(options.programs, best):
                for kernel, speed in speeds(program, source, options.size).items():
                    row[kernel] = max(speed, row.get(kernel, 0))
    print("| kernel | " + " | ".join(options.programs) + " |\n|---|" + "---:|" * len(options.programs))
    for kernel in best[0]:
        print(f"| {kernel} | " + " | ".join(f"{row[kernel]:.1f}" for row in best) + " |")


if __name__ == "__main__":
    main()
