// The steps that compute one element at a time: this file is compiled without the vectoriser, but
// with fused multiply-add where the processor has it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/ladder/steps.h"
#include "backends/cpu/simd.h"

namespace triptych::cpu {
namespace {

/// One NaN for all, whichever the processor made of it.
float canonical(float sum) { return std::isnan(sum) ? std::bit_cast<float>(0x7FC00000) : sum; }

/// c [:, n] += a [:, k] b [k, n] for a block of b.
void add_block(const PlainProduct& p, Range k_block, Range n_block) {
  for (std::int64_t m = 0; m < p.m; ++m) {
    float* c = p.c + m * p.n;
    for (auto k = k_block.begin; k < k_block.end; ++k) {
      const float a = p.a[m * p.k + k];
      const float* b = p.b + k * p.n;
      for (auto n = n_block.begin; n < n_block.end; ++n) c[n] = std::fma(a, b[n], c[n]);
    }
  }
}

}  // namespace

void naive_product(const PlainProduct& product) {
  simd([p = product] {
    for (std::int64_t m = 0; m < p.m; ++m) {
      for (std::int64_t n = 0; n < p.n; ++n) {
        float sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          sum = std::fma(p.a[m * p.k + k], p.b[k * p.n + n], sum);
        }
        p.c[m * p.n + n] = canonical(sum);
      }
    }
  });
}

void blocked_product(const PlainProduct& product) {
  simd([p = product] {
    std::fill_n(p.c, p.m * p.n, 0.0F);
    for (std::int64_t n = 0; n < p.n; n += kScalarColumns) {
      for (std::int64_t k = 0; k < p.k; k += kScalarDepth) {
        add_block(p, {k, std::min(p.k, k + kScalarDepth)}, {n, std::min(p.n, n + kScalarColumns)});
      }
    }
    for (std::int64_t i = 0; i < p.m * p.n; ++i) p.c[i] = canonical(p.c[i]);
  });
}

}  // namespace triptych::cpu
