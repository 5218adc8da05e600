// A graph of one's own, trained on two ranks by four strategies:
// docs/how-to/train-your-own-graph.md
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>

#include "backends/all_backends.h"
#include "core/nn/initializers.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/runtime/executor.h"
#include "parallel/comm/thread_group.h"
#include "parallel/strategies/rank_collectives.h"
#include "parallel/strategies/rank_graph.h"

using namespace triptych;

/// Two layers that learn y = x, and the mean of the squared errors.
TrainingGraph autoencoder(std::int64_t batch) {
  Graph g;
  const auto node = [&](OpPtr op, std::vector<ValueId> in) { return g.add_node(op, in).front(); };
  const auto weight = [&](const char* name, Shape shape) {
    return g.add_state(name, uniform_fan_in(shape, shape[0], 1, name), StateRole::Parameter);
  };
  const auto x = g.add_input("signal", {DType::F32, Shape{batch, 16}});
  auto h = node(make_op(MatMul{}), {x, weight("encode", Shape{16, 8})});
  h = node(make_op(Unary(UnaryKind::Tanh)), {h});
  h = node(make_op(MatMul{}), {h, weight("decode", Shape{8, 16})});
  const auto error = node(make_op(Binary(BinaryKind::Sub)), {h, x});
  const auto square = node(make_op(Binary(BinaryKind::Mul)), {error, error});
  g.mark_output("loss", node(make_op(Reduce(ReduceKind::Mean)), {square}));
  return make_training_graph(std::move(g), {.kind = OptimizerKind::Adam});
}

float train(const char* strategy, int ranks, std::int64_t batch, int steps) {
  float loss = 0;
  const auto kind = parallel::strategy_from_string(strategy);
  const auto samples = uniform_fan_in(Shape{batch, 16}, 1, 2, "samples");
  parallel::ThreadGroup group(ranks, parallel::CommunicatorOptions().timeout);
  parallel::run_ranks(group, [&](parallel::Communicator& all) {
    const auto device = open_device("cpu", {.threads = 1});
    parallel::RankCollectives collectives({{"dp", &all}, {"pp", &all}, {"tp", &all}});
    auto own = parallel::make_rank_graph(
        kind, {.step = autoencoder, .batch = batch, .world_size = ranks, .rank = all.rank()});
    PlanOptions options{
        .placement = {.contract = Contract::Bf16Exact, .collectives = &collectives}};
    StateStore states(*device);
    Executor executor(make_plan(std::move(own.graph), {device.get()}, options), states);
    const auto& graph = executor.plan().graph;
    if (graph.contains("learning_rate")) executor.set_input("learning_rate", scalar_tensor(0.01F));
    if (graph.contains("signal")) {  // this rank's rows, or all of them
      Tensor rows(graph.spec(graph.find("signal")));
      const auto size = rows.bytes().size(), whole = samples.bytes().size();
      const auto first = size == whole ? 0 : static_cast<std::size_t>(all.rank()) * size;
      std::ranges::copy(samples.bytes().subspan(first, size), rows.bytes().begin());
      executor.set_input("signal", rows);
    }
    for (int step = 0; step < steps; ++step) executor.run();
    if (all.rank() == 0) loss = executor.output("loss").as<float>()[0];
  });
  return loss;
}

int main() {
  const float alone = train("dp", 1, 8, 200), dp = train("dp", 2, 8, 200);
  const float zero2 = train("zero2", 2, 8, 200), tp = train("tp", 2, 8, 200);
  const float pipeline = train("pipeline:2", 2, 8, 200), parts = train("pipeline:2", 1, 8, 200);
  std::printf("one rank %.9g  dp %.9g  zero2 %.9g  tp %.9g  pipeline:2 %.9g\n", alone, dp, zero2,
              tp, pipeline);
  const bool promised =
      zero2 == dp && pipeline == parts && std::abs(tp - alone) < 1e-4F * alone + 1e-6F;
  return promised && alone < 0.1F ? 0 : 1;
}
