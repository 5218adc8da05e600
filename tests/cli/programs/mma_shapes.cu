// Shapes of mma.sync on random matrices, and all forms of ldmatrix. Fragments lie as in the PTX
// manual. The host adds in the order of k with fused operations, so all results are equal.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>

constexpr int kRows = 16, kColumns = 8;

template <class T>
__device__ uint32_t word(const T* at) {
  uint32_t bits;
  memcpy(&bits, at, sizeof bits);
  return bits;
}

/// Adds to c: 16 x 8 floats. a lies by rows, b by columns.
__global__ void bfloats(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  float *upper = c + g * kColumns + 2 * t, *lower = upper + 8 * kColumns;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
      : "r"(word(a + g * 16 + 2 * t)), "r"(word(a + (g + 8) * 16 + 2 * t)),
        "r"(word(a + g * 16 + 2 * t + 8)), "r"(word(a + (g + 8) * 16 + 2 * t + 8)),
        "r"(word(b + g * 16 + 2 * t)), "r"(word(b + g * 16 + 2 * t + 8)));
}

__global__ void short_bfloats(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  float *upper = c + g * kColumns + 2 * t, *lower = upper + 8 * kColumns;
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
      : "r"(word(a + g * 8 + 2 * t)), "r"(word(a + (g + 8) * 8 + 2 * t)),
        "r"(word(b + g * 8 + 2 * t)));
}

/// Floats whose lower 13 bits the product ignores.
__global__ void tf32s(const float* a, const float* b, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  float *upper = c + g * kColumns + 2 * t, *lower = upper + 8 * kColumns;
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
      : "r"(word(a + g * 8 + t)), "r"(word(a + (g + 8) * 8 + t)), "r"(word(a + g * 8 + t + 4)),
        "r"(word(a + (g + 8) * 8 + t + 4)), "r"(word(b + g * 8 + t)), "r"(word(b + g * 8 + t + 4)));
}

__global__ void short_tf32s(const float* a, const float* b, float* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  float *upper = c + g * kColumns + 2 * t, *lower = upper + 8 * kColumns;
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
      : "r"(word(a + g * 4 + t)), "r"(word(a + (g + 8) * 4 + t)), "r"(word(b + g * 4 + t)));
}

/// 8 x 8 doubles.
__global__ void doubles(const double* a, const double* b, double* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  double* sums = c + g * kColumns + 2 * t;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(sums[0]), "+d"(sums[1])
               : "d"(a[g * 4 + t]), "d"(b[g * 4 + t]));
}

struct Bytes {
  uint32_t a[4], b[2];
};

__device__ void multiply_bytes(const Bytes& f, int32_t* s, int8_t, uint8_t) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
      : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));
}
__device__ void multiply_bytes(const Bytes& f, int32_t* s, uint8_t, int8_t) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
      : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));
}
__device__ void multiply_bytes(const Bytes& f, int32_t* s, uint8_t, uint8_t) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
      : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]));
}
/// Two products of 16 x 8 x 16.
__device__ void multiply_bytes(const Bytes& f, int32_t* s, int8_t, int8_t) {
  for (int half = 0; half < 2; ++half) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
        : "r"(f.a[2 * half]), "r"(f.a[2 * half + 1]), "r"(f.b[half]));
  }
}

template <class A, class B>
__global__ void bytes(const A* a, const B* b, int32_t* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const Bytes factors = {{word(a + g * 32 + 4 * t), word(a + (g + 8) * 32 + 4 * t),
                          word(a + g * 32 + 16 + 4 * t), word(a + (g + 8) * 32 + 16 + 4 * t)},
                         {word(b + g * 32 + 4 * t), word(b + g * 32 + 16 + 4 * t)}};
  int32_t sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = c[(g + i / 2 * 8) * kColumns + 2 * t + i % 2];
  multiply_bytes(factors, sums, A(), B());
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * kColumns + 2 * t + i % 2] = sums[i];
}

/// 8 x 8 x 16.
__global__ void short_bytes(const int8_t* a, const int8_t* b, int32_t* c) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  int32_t* sums = c + g * kColumns + 2 * t;
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(sums[0]), "+r"(sums[1])
               : "r"(word(a + g * 16 + 4 * t)), "r"(word(b + g * 16 + 4 * t)));
}

constexpr int kLoads = 14;  // registers of x1, x2 and x4, without and with .trans

/// Lane l gives the row number order[l] of a tile of 32 x 8.
__global__ void load_matrices(const uint16_t* tile, const int* order, uint32_t* loaded) {
  __shared__ alignas(16) uint16_t rows[32][8];
  const int lane = threadIdx.x;
  for (int i = 0; i < 8; ++i) rows[lane][i] = tile[lane * 8 + i];
  __syncthreads();
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(rows[order[lane]]));
  uint32_t r[kLoads];
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[1]), "=r"(r[2])
               : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6])
               : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[7]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[8]), "=r"(r[9])
               : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13])
               : "r"(at));
  for (int i = 0; i < kLoads; ++i) loaded[i * 32 + lane] = r[i];
}

std::mt19937 numbers(43);

template <class T>
T* managed(int count) {
  T* data;
  cudaMallocManaged(&data, count * sizeof(T));
  return data;
}

/// Random: whole numbers of all values, others from -1 to 1.
template <class T>
T* drawn(int count) {
  T* data = managed<T>(count);
  for (int i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      data[i] = static_cast<T>(numbers());
    } else {
      data[i] = static_cast<T>(static_cast<float>(static_cast<int32_t>(numbers())) * 0x1p-31F);
    }
  }
  return data;
}

float factor(__nv_bfloat16 value) { return __bfloat162float(value); }
double factor(double value) { return value; }
uint32_t factor(int8_t value) { return static_cast<uint32_t>(value); }
uint32_t factor(uint8_t value) { return value; }
float factor(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= 0xFFFFE000;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

float add_product(float a, float b, float sum) { return std::fma(a, b, sum); }
double add_product(double a, double b, double sum) { return std::fma(a, b, sum); }
uint32_t add_product(uint32_t a, uint32_t b, uint32_t sum) { return a * b + sum; }

/// Runs the kernel on one warp, and compares all sums. They begin with random numbers.
template <class A, class B, class C>
bool is_right(const char* name, void (*kernel)(const A*, const B*, C*), int rows, int inner) {
  const A* a = drawn<A>(rows * inner);
  const B* b = drawn<B>(kColumns * inner);
  C* c = drawn<C>(rows * kColumns);
  C expected[kRows * kColumns];
  for (int i = 0; i < rows * kColumns; ++i) {
    auto sum = static_cast<decltype(factor(*a))>(c[i]);
    for (int k = 0; k < inner; ++k) {
      sum = add_product(factor(a[i / kColumns * inner + k]), factor(b[i % kColumns * inner + k]),
                        sum);
    }
    expected[i] = static_cast<C>(sum);
  }
  kernel<<<1, 32>>>(a, b, c);
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  for (int i = 0; i < rows * kColumns; ++i) {
    if (c[i] == expected[i]) continue;
    std::printf("%s[%d]: %g, not %g\n", name, i, double(c[i]), double(expected[i]));
    return false;
  }
  return true;
}

bool loads_are_right() {
  const auto* tile = drawn<uint16_t>(32 * 8);
  int* order = managed<int>(32);
  auto* loaded = managed<uint32_t>(kLoads * 32);
  for (int i = 0; i < 32; ++i) order[i] = (i * 13 + 5) % 32;
  load_matrices<<<1, 32>>>(tile, order, loaded);
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  constexpr int matrix_of[kLoads] = {0, 0, 1, 0, 1, 2, 3, 0, 0, 1, 0, 1, 2, 3};
  for (int i = 0; i < kLoads * 32; ++i) {
    const int lane = i % 32, first = 8 * matrix_of[i / 32], row = lane / 4, column = lane % 4 * 2;
    const auto at = [&](int r, int c) { return uint32_t{tile[order[first + r] * 8 + c]}; };
    const auto expected = i / 32 < kLoads / 2 ? at(row, column) | at(row, column + 1) << 16
                                              : at(column, row) | at(column + 1, row) << 16;
    if (loaded[i] == expected) continue;
    std::printf("register %d of lane %d: %x, not %x\n", i / 32, lane, loaded[i], expected);
    return false;
  }
  return true;
}

int main() {
  bool right = is_right("bfloats", bfloats, 16, 16);
  right &= is_right("short_bfloats", short_bfloats, 16, 8);
  right &= is_right("tf32s", tf32s, 16, 8);
  right &= is_right("short_tf32s", short_tf32s, 16, 4);
  right &= is_right("doubles", doubles, 8, 4);
  right &= is_right("signed and unsigned", bytes<int8_t, uint8_t>, 16, 32);
  right &= is_right("unsigned and signed", bytes<uint8_t, int8_t>, 16, 32);
  right &= is_right("unsigned", bytes<uint8_t, uint8_t>, 16, 32);
  right &= is_right("signed", bytes<int8_t, int8_t>, 16, 32);
  right &= is_right("short_bytes", short_bytes, 8, 16);
  right &= loads_are_right();
  std::puts(right ? "all are right" : "wrong");
  return right ? 0 : 1;
}
