// A program of somebody else's: builds a small network and runs it on the CPU with the installed
// library, states a training run, then runs a program on the systolic machine.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "backends/all_backends.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "experiments/training/run_config.h"
#include "systolic/driver/driver.h"

int main() {
  using namespace triptych;
  const auto device = open_device("cpu");
  StateStore states(*device);
  auto graph = build_inference_graph(model_preset("unet-s"), 1, 16, 16);
  Executor executor(make_plan(std::move(graph), {device.get()}), states);
  executor.set_input("x", Tensor(TensorSpec{DType::F32, Shape{1, 1, 16, 16}}));
  executor.run();
  const auto logits = executor.output("logits");
  std::printf("logits %s\n", to_string(logits.shape()).c_str());

  training::RunConfig run;
  run.model = model_preset("unet-s");
  std::printf("%zu letters of configuration\n", training::to_json(run).size());

  const auto machine = mmu::open_machine(mmu::find_machine("mmu4"), mmu::Simulation::Twin);
  const auto cycles =
      machine->run(mmu::assemble_program("load units=1 lines=1\nhalt")).counters.cycles;
  std::printf("%llu cycles\n", static_cast<unsigned long long>(cycles));
  return logits.shape() == Shape{1, 1, 16, 16} && cycles > 0 ? 0 : 1;
}
