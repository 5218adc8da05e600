// A graph and its float64 reference, without any device.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "core/graph/graph.h"
#include "core/nn/training_graph.h"

int main() {
  using namespace triptych;
  const auto graph = build_inference_graph(model_preset("unet-s"), 1, 16, 16);
  std::printf("%zu nodes\n", graph.nodes().size());
  return graph.nodes().empty() ? 1 : 0;
}
