// The promise behind every comparison: one seed, one result. A U-Net trained for a few steps ends
// with the same bits at any number of threads under every contract, and on every backend under
// bf16-exact. A step allocates nothing.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "backends/all_backends.h"
#include "core/base/random.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "tests/count_allocations.h"

namespace triptych {
namespace {

constexpr int kSteps = 4;

ModelConfig small_unet() {
  auto config = model_preset("unet-s");
  config.base = 4;
  config.depth = 2;
  config.size = 32;
  return config;
}

/// A training session with its inputs set.
struct Session {
  Session(const std::string& backend, int threads, Contract contract, std::size_t memory_limit = 0,
          const std::map<std::string, std::string>& extra = {},
          const ModelConfig& model = small_unet())
      : device(open_device(backend, {.threads = threads, .extra = extra})), states(*device) {
    const TrainingOptions training = {.batch = 3, .seed = 5};
    auto graph =
        optimize(build_training_graph(model, training).graph, {.memory_limit = memory_limit});
    PlanOptions options;
    options.placement.contract = contract;
    std::vector<Device*> devices = {device.get()};
    const auto host_name = find_backend(backend).host();
    if (!host_name.empty()) {
      host = open_device(host_name, {.threads = threads});
      devices.push_back(host.get());
      options.placement.host = 1;
    }
    executor = std::make_unique<Executor>(make_plan(std::move(graph), devices, options), states);
    Tensor x(TensorSpec{DType::F32, Shape{3, 1, model.size, model.size}});
    Tensor target(x.spec());
    RandomStream random(1, 1);
    for (auto& value : x.as<float>()) value = random.normal();
    for (auto& value : target.as<float>()) value = random.uniform() < 0.3F ? 1.0F : 0.0F;
    executor->set_input("x", x);
    executor->set_input("target", target);
    executor->set_input("learning_rate", scalar_tensor(0.01F));
  }

  /// The bytes of all losses and states after kSteps steps.
  std::vector<std::byte> train() {
    std::vector<std::byte> result;
    const auto append = [&](const Tensor& tensor) {
      result.insert(result.end(), tensor.bytes().begin(), tensor.bytes().end());
    };
    for (int step = 0; step < kSteps; ++step) {
      executor->run();
      append(executor->output("loss"));
    }
    for (const auto& name : states.names()) append(states.read(name));
    return result;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Device> host;
  StateStore states;
  std::unique_ptr<Executor> executor;
};

TEST(Training, has_the_same_bits_at_any_number_of_threads_under_every_contract) {
  for (const auto contract : {Contract::F32, Contract::Bf16, Contract::Bf16Exact}) {
    const auto one = Session("cpu", 1, contract).train();
    for (const int threads : {2, 3}) {
      EXPECT_EQ(Session("cpu", threads, contract).train(), one)
          << to_string(contract) << ", " << threads << " threads";
    }
  }
}

TEST(Training, has_the_same_bits_on_every_backend_under_bf16_exact) {
  const auto cpu = Session("cpu", 2, Contract::Bf16Exact).train();
  for (const Backend* backend : all_backends()) {
    if (!backend->availability().available) continue;
    EXPECT_EQ(Session(std::string(backend->name()), 0, Contract::Bf16Exact).train(), cpu)
        << backend->name();
  }
}

TEST(Training, needs_no_host_where_the_array_has_a_vector_unit) {
  Session session("systolic", 0, Contract::Bf16Exact, 0, {{"machine", "mmu4-vector"}});
  const auto& plan = session.executor->plan();
  for (const auto& step : plan.steps) {
    EXPECT_TRUE(step.entry == nullptr || step.device == 0) << plan.graph.node(step.node).name;
  }
  EXPECT_EQ(session.train(), Session("cpu", 1, Contract::Bf16Exact).train());
}

TEST(Training, has_the_same_bits_on_the_rtl_of_a_vector_unit) {
  ModelConfig model = small_unet();
  model.base = 2;
  model.depth = 1;
  model.size = 16;
  try {
    Session rtl("systolic", 0, Contract::Bf16Exact, 0,
                {{"machine", "mmu4-vector"}, {"simulate", "both"}}, model);
    EXPECT_EQ(rtl.train(), Session("cpu", 1, Contract::Bf16Exact, 0, {}, model).train());
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
}

TEST(Training, contracts_differ_in_their_bits) {
  EXPECT_NE(Session("cpu", 1, Contract::F32).train(), Session("cpu", 1, Contract::Bf16).train());
}

TEST(Training, recomputation_saves_memory_and_keeps_the_loss) {
  Session plain("cpu", 1, Contract::F32);
  Session frugal("cpu", 1, Contract::F32, 1);
  EXPECT_LT(frugal.executor->plan().arena_bytes[0], plain.executor->plan().arena_bytes[0]);
  plain.train();
  frugal.train();
  const float loss = plain.executor->output("loss").as<float>()[0];
  EXPECT_NEAR(frugal.executor->output("loss").as<float>()[0], loss, 1e-4F * loss);
}

TEST(Training, a_step_allocates_nothing) {
  for (const int threads : {1, 2}) {
    Session session("cpu", threads, Contract::F32);
    session.executor->run();
    const auto before = allocations.load();
    for (int step = 0; step < kSteps; ++step) session.executor->run();
    EXPECT_EQ(allocations.load(), before) << threads << " threads";
  }
}

}  // namespace
}  // namespace triptych
