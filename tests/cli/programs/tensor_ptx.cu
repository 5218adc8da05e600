// A product of halves as public kernels write it in inline PTX: cp.async, ldmatrix and mma.sync
// with sums of floats. Then other shapes of mma.sync, and the same elements through stmatrix.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int kM = 32, kN = 16, kK = 64, kTile = 16;

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// c = a b: a warp for 16 x 8 results, and two stages of 16 columns of k. b lies by columns.
__global__ void multiply(const half* a, const half* b, float* c) {
  __shared__ alignas(16) half left[2][kTile][16], right[2][8][16];
  const int lane = threadIdx.x, row = 16 * blockIdx.y, column = 8 * blockIdx.x;
  float sums[4] = {};
  const auto fetch = [&](int stage, int k) {
    const half* from = a + (row + lane / 2) * kK + k + lane % 2 * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;\n" ::"r"(
                     shared_address(&left[stage][lane / 2][lane % 2 * 8])),
                 "l"(from), "n"(16));
    if (lane < 16) {
      from = b + (column + lane / 2) * kK + k + lane % 2 * 8;
      asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 16;" ::"r"(
                       shared_address(&right[stage][lane / 2][lane % 2 * 8])),
                   "l"(__cvta_generic_to_global(from)));
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch(0, 0);
  for (int k = 0; k < kK; k += 16) {
    const int stage = k / 16 % 2;
    if (k + 16 < kK) {
      fetch(1 - stage, k + 16);
      asm volatile("cp.async.wait_group %0;" ::"n"(1));
    } else {
      asm volatile("cp.async.wait_all;" ::);
    }
    __syncthreads();
    uint32_t x[4], y[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_address(&left[stage][lane % 16][lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(shared_address(&right[stage][lane % 8][lane / 8 % 2 * 8])));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(sums[0]),
          "f"(sums[1]), "f"(sums[2]), "f"(sums[3]));
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    c[(row + lane / 4 + i / 2 * 8) * kN + column + lane % 4 * 2 + i % 2] = sums[i];
  }
}

/// Fragments of any shape: elements of a and b from memory by rows and by columns.
__device__ uint32_t word(const void* at) {
  uint32_t bits;
  memcpy(&bits, at, sizeof bits);
  return bits;
}

__global__ void bytes(const signed char* a, const unsigned char* b, int* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  int sums[4] = {1, 2, 3, 4};
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(word(a + g * 32 + 4 * t)), "r"(word(a + (g + 8) * 32 + 4 * t)),
        "r"(word(a + g * 32 + 16 + 4 * t)), "r"(word(a + (g + 8) * 32 + 16 + 4 * t)),
        "r"(word(b + g * 32 + 4 * t)), "r"(word(b + g * 32 + 16 + 4 * t)));
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
}

__global__ void doubles(const double* a, const double* b, double* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  double sums[2] = {0.5, 0.25};
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(sums[0]), "+d"(sums[1])
               : "d"(a[g * 4 + t]), "d"(b[g * 4 + t]));
  c[g * 8 + 2 * t] = sums[0];
  c[g * 8 + 2 * t + 1] = sums[1];
}

/// Halves as sums, and a transposed copy through stmatrix.
__global__ void halves(const half* a, const half* b, half* c, half* transposed) {
  __shared__ alignas(16) half tile[8][8];
  const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  uint32_t sums[2] = {0x3C003C00, 0x3C003C00};  // ones
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
               : "+r"(sums[0]), "+r"(sums[1])
               : "r"(word(a + g * 8 + 2 * t)), "r"(word(a + (g + 8) * 8 + 2 * t)),
                 "r"(word(b + g * 8 + 2 * t)));
  memcpy(c + g * 8 + 2 * t, &sums[0], 4);
  memcpy(c + (g + 8) * 8 + 2 * t, &sums[1], 4);
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(
                   shared_address(&tile[lane % 8][0])),
               "r"(sums[0])
               : "memory");
  __syncwarp();
  memcpy(transposed + 2 * lane, &tile[g][2 * t], 4);
}

template <class T>
T* managed(int count) {
  T* data;
  cudaMallocManaged(&data, count * sizeof(T));
  return data;
}

bool is_right(double result, double expected, const char* what, int at) {
  if (result == expected) return true;
  std::printf("%s %d: %g, not %g\n", what, at, result, expected);
  return false;
}

int main() {
  half *a = managed<half>(kM * kK), *b = managed<half>(kN * kK), *h = managed<half>(16 * 8),
       *s = managed<half>(64);
  float* c = managed<float>(kM * kN);
  auto* signs = managed<signed char>(16 * 32);
  auto* positives = managed<unsigned char>(8 * 32);
  int* whole = managed<int>(16 * 8);
  double *x = managed<double>(32), *y = managed<double>(32), *z = managed<double>(64);
  for (int i = 0; i < kM * kK; ++i) a[i] = static_cast<float>(i * 7 % 13 - 6);
  for (int i = 0; i < kN * kK; ++i) b[i] = static_cast<float>(i * 5 % 11 - 5) / 4;
  for (int i = 0; i < 16 * 32; ++i) signs[i] = static_cast<signed char>(i * 37 % 255 - 127);
  for (int i = 0; i < 8 * 32; ++i) positives[i] = static_cast<unsigned char>(i * 91 % 256);
  for (int i = 0; i < 32; ++i) x[i] = i * 0.5, y[i] = 3 - i;
  multiply<<<dim3(kN / 8, kM / 16), 32>>>(a, b, c);
  bytes<<<1, 32>>>(signs, positives, whole);
  doubles<<<1, 32>>>(x, y, z);
  halves<<<1, 32>>>(a, b, h, s);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  bool right = true;
  for (int i = 0; i < kM * kN; ++i) {
    float sum = 0;
    for (int k = 0; k < kK; ++k) {
      sum += __half2float(a[i / kN * kK + k]) * __half2float(b[i % kN * kK + k]);
    }
    right &= is_right(c[i], sum, "product", i);
  }
  for (int i = 0; i < 16 * 8; ++i) {
    int sum = 1 + i / 64 * 2 + i % 2;
    float narrow = 1;
    for (int k = 0; k < 32; ++k) sum += signs[i / 8 * 32 + k] * positives[i % 8 * 32 + k];
    for (int k = 0; k < 8; ++k) narrow += float(a[i / 8 * 8 + k]) * float(b[i % 8 * 8 + k]);
    right &= is_right(whole[i], sum, "bytes", i) && is_right(h[i], narrow, "halves", i);
  }
  for (int i = 0; i < 64; ++i) {
    double sum = i % 2 == 0 ? 0.5 : 0.25;
    for (int k = 0; k < 4; ++k) sum += x[i / 8 * 4 + k] * y[i % 8 * 4 + k];
    right &=
        is_right(z[i], sum, "doubles", i) && is_right(s[i % 8 * 8 + i / 8], h[i], "transposed", i);
  }
  std::puts(right ? "all are right" : "wrong");
  return right ? 0 : 1;
}
