// A square matrix product by oneDNN.   gemm_onednn SIZE THREADS REPEATS plain|packed
//
// packed: B has been brought into the layout that the library likes before the time starts.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <cstdlib>

#include "onednn_chain.h"
#include "samples.h"

namespace {

using namespace triptych::rivals;

std::vector<double> time_plain(std::int64_t n, int repeats) {
  std::vector<float> a(n * n, 0.25F), b(n * n, 0.5F), c(n * n);
  return time_runs(
      repeats, [&] { dnnl_sgemm('N', 'N', n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n); });
}

std::vector<double> time_packed(std::int64_t n, int repeats) {
  Chain chain;
  const Desc plain({n, n}, kF32, Tag::ab);
  const dnnl::matmul::primitive_desc product({plain, {{n, n}, kF32, Tag::any}, plain}, chain.cpu);
  dnnl::memory a = chain.random(plain, 1), b = chain.random(product.weights_desc(), 1);
  dnnl::memory c = chain.zeros(plain);
  chain.add(dnnl::matmul(product), {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  return time_runs(repeats, [&] { chain.run(); });
}

}  // namespace

int main(int, char** arguments) {
  const std::int64_t n = std::atoi(arguments[1]);
  omp_set_num_threads(std::atoi(arguments[2]));
  const int repeats = std::atoi(arguments[3]);
  const bool packed = std::string(arguments[4]) == "packed";
  print_samples(onednn_version(), packed ? time_packed(n, repeats) : time_plain(n, repeats));
}
