// A square matrix product by OpenBLAS.   gemm_openblas SIZE THREADS REPEATS
// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>

#include <cstdlib>

#include "samples.h"

int main(int, char** arguments) {
  const int n = std::atoi(arguments[1]);
  openblas_set_num_threads(std::atoi(arguments[2]));
  const std::size_t elements = static_cast<std::size_t>(n) * n;
  std::vector<float> a(elements, 0.25F), b(elements, 0.5F), c(elements);
  const auto seconds = triptych::rivals::time_runs(std::atoi(arguments[3]), [&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 0,
                c.data(), n);
  });
  triptych::rivals::print_samples(openblas_get_config(), seconds);
}
