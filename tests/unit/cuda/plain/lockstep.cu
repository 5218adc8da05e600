// Kernels whose warps part, and kernels whose lanes or threads work on one place of memory.
// SPDX-License-Identifier: Apache-2.0

__global__ void serial(const float* x, float* y) {
  float sum = 0;
  for (int i = 0; i < 32; ++i) {
    if (threadIdx.x == i) sum += x[threadIdx.x];
    __syncwarp();
  }
  y[threadIdx.x] = sum;
}

__global__ void parity(const float* x, float* y) {
  float sum = 0;
  for (int i = 0; i < 64; ++i) {
    if ((i & 1) == (threadIdx.x & 1)) sum += x[i * 32 + threadIdx.x];
  }
  y[threadIdx.x] = sum;
}

__global__ void chosen(const int* flags, const float* x, float* y, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    if (flags[i] % 4 == 0) sum += x[i];
  }
  y[threadIdx.x] = sum;
}

__device__ __noinline__ float loaded(const float* x, int i) { return x[i]; }

// Both branches call one function, which their lanes run one after another.
__global__ void called(const float* x, float* y) {
  const int i = threadIdx.x;
  float value;
  if (i < 16) {
    value = loaded(x, i);
  } else {
    value = 2 * loaded(x, i);
  }
  y[i] = value;
}

__device__ int depth_of(const int* x, int i) { return x[i] == 0 ? 0 : 1 + depth_of(x, x[i]); }

__global__ void recursive(const int* x, int* y) { y[threadIdx.x] = depth_of(x, threadIdx.x); }

__device__ void add_lanes(volatile float* sums, int t) {
  for (int step = 16; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];  // volatile sum: no __syncwarp
  }
}

__global__ void volatile_sum(const float* x, float* y) {
  __shared__ float sums[32];
  sums[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  add_lanes(sums, threadIdx.x);
  if (threadIdx.x == 0) y[0] = sums[0];
}

__global__ void synchronised_sum(const float* x, float* y) {
  __shared__ volatile float sums[32];
  const int t = threadIdx.x;
  sums[t] = x[t];
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    float value = sums[t];
    if (t < step) value += sums[t + step];
    __syncwarp();
    sums[t] = value;
    __syncwarp();
  }
  if (t == 0) y[0] = sums[0];
}

__global__ void after_shuffle(const float* x, float* y) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  tile[t] = x[t];
  const float other = __shfl_xor_sync(0xffffffffu, x[t], 1);
  y[t] = tile[31 - t] + other;  // after shuffle
}

__global__ void after_vote(const float* x, float* y) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  tile[t] = x[t];
  const unsigned votes = __ballot_sync(0xffffffffu, x[t] > 0);
  y[t] = tile[31 - t] + votes;  // after vote
}

__global__ void half_warps(const float* x, float* y) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  tile[t] = x[t];
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
  y[t] = tile[t ^ 15];
}

__global__ void across_halves(const float* x, float* y) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  tile[t] = x[t];
  __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
  y[t] = tile[t ^ 16];  // across halves
}

__global__ void rest_of_warp(const float* x, float* y, int n) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  const unsigned mask = __ballot_sync(0xffffffffu, t < n);
  if (t >= n) return;
  tile[t] = x[t];
  __syncwarp(mask);
  y[t] = tile[n - 1 - t];
}

__global__ void locked(int* lock, int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) != 0) continue;
    __threadfence_block();
    *count = *count + 1;
    __threadfence_block();
    atomicExch(lock, 0);
    done = true;
  }
}

__global__ void locked_without_fences(int* lock, int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) != 0) continue;
    *count = *count + 1;  // locked without fences
    atomicExch(lock, 0);
    done = true;
  }
}

// Lane 0 fences and fails to take a lock. That tells nobody of what it wrote.
__global__ void failed_lock(int* lock, int* data) {
  const int t = threadIdx.x;
  if (t == 0) {
    data[0] = 1;
    __threadfence_block();
    data[1] = atomicCAS(lock, 7, 8);
  } else {
    data[1 + t] = atomicCAS(lock, 0, 1);
    __threadfence_block();
    data[1 + t] += data[0];  // failed lock
  }
}

__global__ void cleared_and_counted(int* total) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  atomicAdd(&count, 1);  // cleared and counted: no barrier
  __syncthreads();
  if (threadIdx.x == 0) *total = count;
}

struct Four {
  float a, b, c, d;
};
struct Particle {
  float mass;
  Four place;
};
struct Pair {
  double a, b;
};

__global__ void copied_part(const Particle* particles, float* y) {
  const Four place = particles[threadIdx.x].place;  // copied part
  y[threadIdx.x] = place.a + place.b + place.c + place.d;
}

__global__ void copied_whole(const Particle* from, Particle* to) {
  to[threadIdx.x] = from[threadIdx.x];
}

__global__ void copied_pairs(const Pair* from, Pair* to) {
  to[threadIdx.x] = from[threadIdx.x + 1];  // 16 bytes, aligned to 8
}

__global__ void for_which_gpu(int* y) {
#ifdef __CUDA_ARCH__
  y[threadIdx.x] = __CUDA_ARCH__;
#else
  y[threadIdx.x] = 0;
#endif
}

__global__ void returns_early(const float* x, float* y, int n) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  if (t >= n) return;
  tile[t] = x[t];
  __syncthreads();  // returns early
  y[t] = tile[n - 1 - t];
}

__global__ void doubles(double* x) { x[threadIdx.x] = 1; }
__global__ void shorts(short* x) { x[threadIdx.x] = 1; }
__global__ void addresses(float** x) { x[0][threadIdx.x] = 1; }

__global__ void own_bytes(int* y) {
  __shared__ char bytes[32];
  bytes[threadIdx.x] = 1;
  y[threadIdx.x] = bytes[threadIdx.x];
}

__global__ void bytes_then_words(int* y) {
  __shared__ int words[8];
  reinterpret_cast<char*>(words)[threadIdx.x] = 1;
  y[threadIdx.x] = words[threadIdx.x / 4];
}

__global__ void words_then_bytes(int* y) {
  __shared__ int words[8];
  if (threadIdx.x < 8) words[threadIdx.x] = 1;
  y[threadIdx.x] = reinterpret_cast<char*>(words)[threadIdx.x];
}

__global__ void half_words(int* y) {
  __shared__ int words[32];
  reinterpret_cast<short*>(words)[2 * threadIdx.x] = 1;
  y[threadIdx.x] = words[threadIdx.x];
}
