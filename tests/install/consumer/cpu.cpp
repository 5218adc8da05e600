// A network on the CPU, without the list of all backends.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "backends/cpu/cpu_backend.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"

int main() {
  using namespace triptych;
  const auto device = cpu::backend().open({});
  StateStore states(*device);
  auto graph = build_inference_graph(model_preset("unet-s"), 1, 16, 16);
  Executor executor(make_plan(std::move(graph), {device.get()}), states);
  executor.set_input("x", Tensor(TensorSpec{DType::F32, Shape{1, 1, 16, 16}}));
  executor.run();
  const auto logits = executor.output("logits");
  std::printf("logits %s\n", to_string(logits.shape()).c_str());
  return logits.shape() == Shape{1, 1, 16, 16} ? 0 : 1;
}
