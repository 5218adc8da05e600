// The machine itself: seconds of 10^9 float operations, as multiply-adds in registers, by all
// threads together.   fma_peak THREADS REPEATS
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <thread>

#include "samples.h"

namespace {

using triptych::rivals::now;

#if defined(__AVX512F__)
constexpr int kBytes = 64;
constexpr int kChains = 24;
#else
constexpr int kBytes = 32;
constexpr int kChains = 12;
#endif
using Vector __attribute__((vector_size(kBytes))) = float;

/// Operations done. The sums go where the compiler cannot lose them.
double multiply_add(long rounds, Vector& out) {
  Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Vector{} + static_cast<float>(i);
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * 0.999F + 1e-3F;
  }
  for (const auto& sum : sums) out += sum;
  return 2.0 * kChains * (kBytes / sizeof(float)) * static_cast<double>(rounds);
}

/// Operations per second of one thread. It starts when all have warmed up.
double rate(std::atomic<int>& waiting) {
  Vector sink = {};
  for (const double start = now(); now() - start < 0.004;) multiply_add(500, sink);
  waiting--;
  while (waiting.load() > 0) {
  }
  double done = 0;
  const double start = now();
  while (now() - start < 0.015) done += multiply_add(2000, sink);
  const double seconds = now() - start;
  volatile float keep = sink[0];
  static_cast<void>(keep);
  return done / seconds;
}

double rate_of_all(int threads) {
  std::atomic<int> waiting = threads;
  std::vector<double> rates(threads);
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back([&, i] { rates[i] = rate(waiting); });
  rates[0] = rate(waiting);
  for (auto& other : others) other.join();
  double sum = 0;
  for (const double one : rates) sum += one;
  return sum;
}

}  // namespace

int main(int, char** arguments) {
  const int threads = std::atoi(arguments[1]);
  std::vector<double> seconds(std::atoi(arguments[2]));
  for (auto& sample : seconds) sample = 1e9 / rate_of_all(threads);
  triptych::rivals::print_samples(__VERSION__, seconds);
}
