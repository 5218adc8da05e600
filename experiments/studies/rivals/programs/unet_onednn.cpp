// U-Net by oneDNN.   unet_onednn infer|train MODEL BATCH THREADS REPEATS auto|winograd
//
// auto: the library chooses among its convolutions. winograd: Winograd wherever possible.
// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <cstdlib>

#include "onednn_infer.h"
#include "onednn_train.h"
#include "samples.h"

int main(int, char** arguments) {
  using namespace triptych::rivals;
  const std::string mode = arguments[1];
  const Model model = model_of(arguments[2]);
  const int batch = std::atoi(arguments[3]), repeats = std::atoi(arguments[5]);
  omp_set_num_threads(std::atoi(arguments[4]));
  const auto wide = std::string(arguments[6]) == "winograd" ? Algorithm::convolution_winograd
                                                            : Algorithm::convolution_auto;
  if (mode == "infer") {
    Inference chain(model, batch, wide);
    print_samples(onednn_version(), time_runs(repeats, [&] { chain.run(); }));
    return 0;
  }
  Training chain(model, batch, wide);
  chain.run();
  const double first = chain.loss;
  const auto seconds = time_runs(repeats, [&] { chain.run(); });
  if (!(chain.loss < first)) {
    std::fprintf(stderr, "the loss went from %g to %g\n", first, chain.loss);
    return 1;
  }
  print_samples(onednn_version(), seconds);
}
