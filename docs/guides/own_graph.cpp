// A graph of one's own, trained on two ranks by four strategies: train-your-own-graph.md
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "backends/all_backends.h"
#include "core/nn/initializers.h"
#include "core/nn/layers.h"
#include "core/nn/training_graph.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/runtime/executor.h"
#include "parallel/comm/thread_group.h"
#include "parallel/strategies/rank_collectives.h"
#include "parallel/strategies/rank_graph.h"

using namespace triptych;
using namespace triptych::parallel;

/// Two layers that learn y = x, and the mean of the squared errors.
TrainingGraph autoencoder(std::int64_t batch) {
  Graph g;
  NetworkBuilder net{g};
  const auto x = g.add_input("signal", {DType::F32, Shape{batch, 16}});
  const auto hidden = g.emit_one(make_op(Unary(UnaryKind::Tanh)), {linear(net, "encode", x, 8)});
  const auto y = linear(net, "decode", hidden, 16);
  const auto error = g.emit_one(make_op(Binary(BinaryKind::Sub)), {y, x});
  const auto square = g.emit_one(make_op(Binary(BinaryKind::Mul)), {error, error});
  g.mark_output("loss", g.emit_one(make_op(Reduce(ReduceKind::Mean)), {square}));
  return make_training_graph(std::move(g), {.kind = OptimizerKind::Adam});
}

float train(const char* strategy, int ranks) {
  float loss = 0;
  const auto signal = uniform_fan_in(Shape{8, 16}, 1, 2, "signal");
  ThreadGroup group(ranks, CommunicatorOptions().timeout);
  run_ranks(group, [&](Communicator& all) {
    const auto device = open_device("cpu", {.threads = 1});
    RankCollectives collectives(all);
    const StrategyRequest work = {autoencoder, 8, ranks, all.rank()};
    const PlacementOptions how = {.contract = Contract::Bf16Exact, .collectives = &collectives};
    auto own = make_rank_graph(strategy_from_string(strategy), work);
    StateStore states(*device);
    Executor executor(make_plan(std::move(own.graph), {device.get()}, {how}), states);
    const auto& graph = executor.plan().graph;
    if (graph.contains("learning_rate")) executor.set_input("learning_rate", scalar_tensor(0.01F));
    if (graph.contains("signal")) {  // all rows, or those of this rank
      const int parts = graph.spec(graph.find("signal")) == signal.spec() ? 1 : ranks;
      executor.set_input("signal", part_of_tensor(signal, all.rank() % parts, parts, 0));
    }
    for (int step = 0; step < 50; ++step) executor.run();
    if (all.rank() == 0) loss = executor.output("loss").as<float>()[0];
  });
  return loss;
}

int main() {
  const float alone = train("dp", 1), dp = train("dp", 2), zero2 = train("zero2", 2);
  const float tp = train("tp", 2), two = train("pipeline:2", 2), one = train("pipeline:2", 1);
  std::printf("dp %.9g  zero2 %.9g  tp %.9g  pipeline:2 %.9g\n", dp, zero2, tp, two);
  const bool promised = zero2 == dp && two == one && tp > 0.999F * alone && tp < 1.001F * alone;
  return promised && alone < 0.1F ? 0 : 1;
}
