// Arithmetic with a direction of rounding gives the bits of the processor's own modes, for random
// numbers of all sizes, zeros, subnormal numbers, infinities and numbers that are none.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

constexpr int kModes[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
constexpr int kCount = 8192, kOperations = 7;

#define ALL(type, prefix, fma)                                                                  \
  __global__ void operate(const type* x, const type* y, type* results, int count) {             \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                        \
    const type a = x[i], b = y[i];                                                              \
    const type all[3 * kOperations] = {                                                         \
        prefix##add_rd(a, b), prefix##add_ru(a, b), prefix##add_rz(a, b), prefix##sub_rd(a, b), \
        prefix##sub_ru(a, b), prefix##sub_rz(a, b), prefix##mul_rd(a, b), prefix##mul_ru(a, b), \
        prefix##mul_rz(a, b), prefix##div_rd(a, b), prefix##div_ru(a, b), prefix##div_rz(a, b), \
        prefix##rcp_rd(a),    prefix##rcp_ru(a),    prefix##rcp_rz(a),    prefix##sqrt_rd(a),   \
        prefix##sqrt_ru(a),   prefix##sqrt_rz(a),   fma##_rd(a, b, a),    fma##_ru(a, b, a),    \
        fma##_rz(a, b, a)};                                                                     \
    for (int k = 0; k < 3 * kOperations; ++k) results[k * count + i] = all[k];                  \
  }
ALL(float, __f, __fmaf)
ALL(double, __d, __fma)
#undef ALL

__global__ void convert(const double* x, const int* whole, float* results, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  results[i] = __double2float_rd(x[i]);
  results[count + i] = __double2float_ru(x[i]);
  results[2 * count + i] = __double2float_rz(x[i]);
  results[3 * count + i] = __int2float_rd(whole[i]);
  results[4 * count + i] = __int2float_ru(whole[i]);
  results[5 * count + i] = __int2float_rz(whole[i]);
}

template <class T>
T on_host(int operation, T x, T y) {
  const volatile T a = x, b = y;
  volatile T result = 0;
  if (operation == 0) result = a + b;
  if (operation == 1) result = a - b;
  if (operation == 2) result = a * b;
  if (operation == 3) result = a / b;
  if (operation == 4) result = 1 / a;
  if (operation == 5) result = std::sqrt(a);
  if (operation == 6) result = std::fma(a, b, a);
  return result;
}

/// NaN has several forms, and its sign is open.
template <class T>
bool differ(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) != 0 && !(std::isnan(a) && std::isnan(b));
}

unsigned long long state = 1;
template <class T>
T number(int i) {
  const T special[] = {
      0, -T(0), 1, -1, T(INFINITY), -T(INFINITY), T(NAN), T(1e-45), T(5e-324), T(3.4028235e38)};
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  if (i % 5 == 0) return special[state >> 33 & 7];
  if (i % 5 < 3) return T(int(state >> 34)) / T(1 << 20);  // many results are exact, or halves
  T value;
  const unsigned long long bits = state ^ state >> 32;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* device;
  cudaMalloc(&device, values.size() * sizeof(T));
  cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

template <class T>
int compare() {
  std::vector<T> x(kCount), y(kCount), got(3 * kOperations * kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = number<T>(i);
    y[i] = number<T>(i / 7);
  }
  T* results = on_device(got);
  operate<<<kCount / 128, 128>>>(on_device(x), on_device(y), results, kCount);
  cudaMemcpy(got.data(), results, got.size() * sizeof(T), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int k = 0; k < 3 * kOperations; ++k) {
    std::fesetround(kModes[k % 3]);
    for (int i = 0; i < kCount; ++i)
      wrong += differ(got[k * kCount + i], on_host(k / 3, x[i], y[i]));
    std::fesetround(FE_TONEAREST);
  }
  return wrong;
}

int compare_conversions() {
  std::vector<double> x(kCount);
  std::vector<int> whole(kCount);
  std::vector<float> got(6 * kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = number<double>(i);
    if (i % 2 == 0) x[i] = std::ldexp(x[i], -int(std::ilogb(x[i])) + i % 300 - 160);
    whole[i] = int(state >> (20 + i % 30));
  }
  float* results = on_device(got);
  convert<<<kCount / 128, 128>>>(on_device(x), on_device(whole), results, kCount);
  cudaMemcpy(got.data(), results, got.size() * sizeof(float), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int k = 0; k < 6; ++k) {
    std::fesetround(kModes[k % 3]);
    for (int i = 0; i < kCount; ++i) {
      const volatile double value = x[i];
      const volatile int integer = whole[i];
      const volatile float expected =
          k < 3 ? static_cast<float>(value) : static_cast<float>(integer);
      wrong += differ<float>(got[k * kCount + i], expected);
    }
    std::fesetround(FE_TONEAREST);
  }
  return wrong;
}

int main() {
  printf("%d %d %d different\n", compare<float>(), compare<double>(), compare_conversions());
}
