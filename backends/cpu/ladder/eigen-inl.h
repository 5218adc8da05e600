// Eigen's product for the instruction set that the including file is compiled for.
// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>

#include "backends/cpu/ladder/steps.h"

namespace triptych::cpu {
namespace {

void multiply_by_eigen(const PlainProduct& p) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> a(p.a, p.m, p.k), b(p.b, p.k, p.n);
  Eigen::Map<Matrix>(p.c, p.m, p.n).noalias() = a * b;
}

}  // namespace
}  // namespace triptych::cpu
