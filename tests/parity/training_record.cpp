// Trains a U-Net on random batches and records everything another framework needs to repeat it:
// initial parameters, batches, the loss of every step and the gradients of the first one.
//   training_record OUT.safetensors sgd|adam STEPS BATCH
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "backends/all_backends.h"
#include "core/base/random.h"
#include "core/io/safetensors.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"

namespace {

using namespace triptych;

Tensor random_image(const TensorSpec& spec, std::uint64_t step) {
  Tensor image(spec);
  RandomStream random(3, step);
  for (auto& value : image.as<float>()) value = random.normal();
  return image;
}

/// A target the network can learn: where the image, smoothed along rows, is positive.
Tensor target_of(const Tensor& image) {
  Tensor target(image.spec());
  const auto x = image.as<float>();
  float smooth = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    smooth = 0.8F * smooth + x[i];
    target.as<float>()[i] = smooth > 0 ? 1.0F : 0.0F;
  }
  return target;
}

void record(const std::string& path, OptimizerKind kind, int steps, std::int64_t batch,
            bool winograd) {
  const float learning_rate = kind == OptimizerKind::Sgd ? 0.05F : 1e-3F;
  auto training =
      build_training_graph(model_preset("unet-s"), {.batch = batch, .optimizer = {.kind = kind}});
  for (std::size_t i = 0; i < training.parameters.size(); ++i) {
    training.graph.mark_output("gradient." + training.parameters[i],
                               training.graph.find(training.parameter_gradients[i]));
  }
  const auto device = open_device("cpu");
  StateStore states(*device);
  PlanOptions options;
  options.placement.transformed = winograd;
  Executor executor(make_plan(std::move(training.graph), {device.get()}, options), states);
  TensorMap tensors;
  for (const auto& name : training.parameters) {
    tensors.emplace("parameter." + name, states.read(name));
  }
  const auto& graph = executor.plan().graph;
  Tensor losses(TensorSpec{DType::F32, Shape{steps}});
  executor.set_input("learning_rate", scalar_tensor(learning_rate));
  for (int step = 0; step < steps; ++step) {
    auto image = random_image(graph.spec(graph.find("x")), static_cast<std::uint64_t>(step));
    auto target = target_of(image);
    executor.set_input("x", image);
    executor.set_input("target", target);
    executor.run();
    losses.as<float>()[static_cast<std::size_t>(step)] = executor.output("loss").as<float>()[0];
    tensors.emplace(fmt::format("x.{}", step), std::move(image));
    tensors.emplace(fmt::format("target.{}", step), std::move(target));
    if (step > 0) continue;
    for (const auto& name : training.parameters) {
      tensors.emplace("gradient." + name, executor.output("gradient." + name));
    }
  }
  tensors.emplace("losses", std::move(losses));
  save_safetensors(path, tensors, {{"learning_rate", fmt::format("{:.9g}", learning_rate)}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr,
               "usage: training_record OUT.safetensors sgd|adam STEPS BATCH plain|winograd\n");
    return 2;
  }
  try {
    record(argv[1], value_of<OptimizerKind>(argv[2]), std::stoi(argv[3]), std::stoi(argv[4]),
           std::string_view(argv[5]) == "winograd");
  } catch (const std::exception& error) {
    fmt::print(stderr, "training_record: {}\n", error.what());
    return 1;
  }
  return 0;
}
