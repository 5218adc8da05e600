// Messages between ranks: the claims "ring", "averaging" and "model-parallel-gradients".
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/collectives.h"
#include "experiments/page/text_table.h"
#include "experiments/studies/examinations.h"
#include "experiments/studies/laboratory.h"
#include "experiments/studies/page_parts.h"
#include "experiments/studies/rules.h"
#include "experiments/studies/server_schedule.h"
#include "experiments/training/trainer.h"
#include "parallel/collectives/price.h"
#include "parallel/strategies/communication_cost.h"

namespace triptych::studies {
namespace {

/// A TPU v5e's link, as `triptych train --transport simulated` assumes.
constexpr parallel::Link kLink = {1e-6, 45e9};

using Kind = parallel::Strategy::Kind;

TrainingOptions options_of(std::int64_t batch) { return {.batch = batch}; }

Graph rank_graph(const parallel::Strategy& strategy, int ranks, int rank,
                 const ModelConfig& model) {
  parallel::StrategyRequest request;
  request.step = training_step(model, options_of(ranks));
  request.batch = ranks;
  request.world_size = ranks;
  request.rank = rank;
  request.order = ReductionOrder::Ring;
  return std::move(parallel::make_rank_graph(strategy, request).graph);
}

double bytes_sent(const parallel::Strategy& strategy, int ranks, const ModelConfig& model) {
  const auto graph = rank_graph(strategy, ranks, 0, model);
  return static_cast<double>(parallel::communication_cost(graph, ranks).bytes_sent);
}

double parameter_bytes(const ModelConfig& model) {
  const auto training = build_training_graph(model, options_of(1));
  double bytes = 0;
  for (const auto& name : training.parameters)
    bytes += static_cast<double>(training.graph.spec(training.graph.find(name)).bytes());
  return bytes;
}

/// Seconds of ranks behind a switch.
double switched_seconds(const std::vector<parallel::Schedule>& schedules) {
  const auto net = parallel::Interconnect::switched(static_cast<int>(schedules.size()), kLink);
  return parallel::price(schedules, sizeof(float), net).seconds;
}

std::vector<parallel::Schedule> ring_schedules(int ranks, std::int64_t elements) {
  std::vector<parallel::Schedule> schedules;
  schedules.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    schedules.push_back(make_schedule(parallel::Collective::AllReduce, parallel::Algorithm::Ring,
                                      {.world_size = ranks, .rank = rank, .elements = elements}));
  }
  return schedules;
}

}  // namespace

Finding examine_ring(Laboratory& laboratory) {
  const auto model = model_preset(laboratory.quick() ? "unet-s" : "unet-m");
  const double buffer = parameter_bytes(model);
  const auto elements = static_cast<std::int64_t>(buffer / sizeof(float));
  std::vector<LinkBytes> links;
  std::vector<std::vector<Json>> rows;
  Series server = {.name = "server", .kind = TimeKind::Modelled, .points = {}};
  Series ring = {.name = "ring", .kind = TimeKind::Modelled, .points = {}};
  Series server_s = {.name = "server", .kind = TimeKind::Simulated, .points = {}};
  Series ring_s = {.name = "ring", .kind = TimeKind::Simulated, .points = {}};
  for (const int ranks : {2, 4, 8, 16}) {
    links.push_back({static_cast<double>(ranks), bytes_sent({.kind = Kind::Server}, ranks, model),
                     bytes_sent({}, ranks, model)});
    const auto& bytes = links.back();
    const double by_server = switched_seconds(server_schedules(ranks, elements)),
                 by_ring = switched_seconds(ring_schedules(ranks, elements));
    rows.push_back({ranks, figure(bytes.server, "byte", TimeKind::Modelled),
                    figure(bytes.ring, "byte", TimeKind::Modelled),
                    figure(by_server, "s", TimeKind::Simulated),
                    figure(by_ring, "s", TimeKind::Simulated)});
    server.points.emplace_back(ranks, bytes.server);
    ring.points.emplace_back(ranks, bytes.ring);
    server_s.points.emplace_back(ranks, by_server);
    ring_s.points.emplace_back(ranks, by_ring);
  }
  const auto &first = links.front(), &last = links.back();
  Finding finding = {
      .verdict = judge_ring(links, buffer),
      .why = fmt::format("{}: {} of parameters. From 2 to 16 ranks what the server's link carries "
                         "in a step grows {:.1f} times, from {} to {}; what a rank of the ring "
                         "sends stays below twice the parameters: {} and {}.",
                         model.name, page::format_bytes(buffer), last.server / first.server,
                         page::format_bytes(first.server), page::format_bytes(last.server),
                         page::format_bytes(first.ring), page::format_bytes(last.ring)),
      .commands = {
          fmt::format("triptych train --model {} --ranks 4 --batch 4 --steps 1 --transport "
                      "simulated --interconnect switch --strategy ps-sync",
                      model.name),
          fmt::format("triptych train --model {} --ranks 4 --batch 4 --steps 1 --transport "
                      "simulated --interconnect switch --strategy dp --order ring",
                      model.name)}};
  finding.tables.push_back(table("One training step: bytes over the busiest link, one direction",
                                 {{"ranks", "1"},
                                  {"server", "byte"},
                                  {"ring", "byte"},
                                  {"server, behind a switch", "s"},
                                  {"ring, behind a switch", "s"}},
                                 std::move(rows)));
  finding.charts.push_back(line_chart(
      "ring-bytes", "Bytes over the busiest link", {.label = "ranks", .unit = "1", .log = true},
      {.label = "bytes", .unit = "byte", .log = true}, {server, ring}));
  finding.charts.push_back(line_chart(
      "ring-times", "Simulated time of one exchange", {.label = "ranks", .unit = "1", .log = true},
      {.label = "time", .unit = "s", .log = true}, {server_s, ring_s}));
  return finding;
}

namespace {

/// A short training run on two ranks.
struct ShortRun {
  std::string strategy;
  std::vector<float> losses;
  std::int64_t elements = 0;   ///< that are summed at a time
  double communication_s = 0;  ///< per step, simulated
  std::vector<float> weights;
};

constexpr int kSteps = 32;

training::RunConfig run_config() {
  training::RunConfig config;
  config.model = model_preset("unet-s");
  config.model.base = 4;
  config.model.depth = 2;
  config.model.size = 32;
  config.data.synthetic_images = 20;
  config.training.batch = 8;
  // Plain descent: averaging after each step then is descent along the mean gradient.
  config.training.optimizer = {.kind = OptimizerKind::Sgd, .momentum = 0};
  config.augmentation = {};
  config.learning_rate = 0.1F;
  return config;
}

/// Modelled seconds of a sum over two ranks on a ring of links.
double sum_seconds(std::int64_t elements) {
  return parallel::price(ring_schedules(2, elements), sizeof(float),
                         parallel::Interconnect::ring(2, kLink))
      .seconds;
}

/// `period`: steps between averages of all states. 0: gradients are summed in each step.
ShortRun train(int period, const training::RunConfig& config, const training::TrainingData& data) {
  parallel::Strategy strategy;
  if (period > 0) strategy = {.kind = Kind::LocalSgd, .period = period};
  training::ExecutionConfig machine_config;
  machine_config.threads = 1;
  machine_config.parallel.ranks = 2;
  machine_config.parallel.strategy = strategy;
  const training::DeviceSet machine(machine_config);
  training::Trainer trainer(machine, {.model = config.model, .options = config.training});
  const segmentation::Batcher batcher(data.train, data.normalization,
                                      training::batcher_options(config));
  ShortRun run = {.strategy = to_string(strategy), .losses = {}, .weights = {}};
  const auto batch = config.training.batch;
  for (int step = 0; step < kSteps; ++step) {
    const auto inputs = batcher.draw(step * batch, batch);
    run.losses.push_back(trainer.step(inputs.x, inputs.y, config.learning_rate));
  }
  trainer.synchronize();
  for (const auto& name : trainer.states().names()) {
    const auto state = trainer.states().read(name);
    if (period > 0 && state.spec().dtype == DType::F32)
      run.elements += state.spec().shape.elements();
  }
  for (const auto& name : parameter_names(config.model)) {
    const auto tensor = trainer.states().read(name);
    const auto values = tensor.as<float>();
    run.weights.insert(run.weights.end(), values.begin(), values.end());
  }
  if (period == 0) run.elements = std::ssize(run.weights);
  run.communication_s = sum_seconds(run.elements) / std::max(period, 1);
  return run;
}

/// The largest difference of weights, relative to the largest weight.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::fabs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(a[i])));
  }
  return difference / largest;
}

double last_losses(const ShortRun& run) {
  return std::accumulate(run.losses.end() - 8, run.losses.end(), 0.0) / 8;
}

Series loss_series(const ShortRun& run) {
  Series series = {.name = run.strategy, .kind = TimeKind::Measured, .points = {}};
  for (std::size_t i = 0; i < run.losses.size(); ++i)
    series.points.emplace_back(static_cast<double>(i + 1), run.losses[i]);
  return series;
}

}  // namespace

Finding examine_averaging(Laboratory&) {
  const auto config = run_config();
  const auto data = training::load_data(config);
  const auto synchronous = train(0, config, data), every = train(1, config, data),
             some = train(8, config, data);
  const Averaging averaging = {
      .synchronous_s = synchronous.communication_s,
      .averaged_s = some.communication_s,
      .difference = largest_difference(synchronous.weights, some.weights),
      .difference_every_step = largest_difference(synchronous.weights, every.weights)};
  std::vector<std::vector<Json>> rows;
  for (const auto* run : {&synchronous, &every, &some}) {
    rows.push_back({run->strategy, run->elements,
                    figure(run->communication_s, "s", TimeKind::Simulated), last_losses(*run),
                    largest_difference(synchronous.weights, run->weights)});
  }
  Finding finding = {
      .verdict = judge_averaging(averaging),
      .why =
          fmt::format("Two ranks, {} steps of plain gradient descent. Averaging every 8 steps "
                      "communicates {:.2g} times as long as summing gradients in every step, "
                      "and ends with weights that differ by {:.2g} of the largest and a loss of "
                      "{:.3f} against {:.3f}. Averaged in every step the weights are those of "
                      "the whole batch's gradient, to {:.1g}: it is the steps apart that are not "
                      "backpropagation.",
                      kSteps, averaging.averaged_s / averaging.synchronous_s, averaging.difference,
                      last_losses(some), last_losses(synchronous), averaging.difference_every_step),
      .commands = {
          "triptych train --model unet-s --base 4 --depth 2 --size 32 --batch 8 --steps 32 "
          "--optimizer sgd --momentum 0 --lr 0.1 --augmentation none --ranks 2 --transport "
          "simulated --strategy local-sgd:8",
          "the same with --strategy dp, and with --strategy local-sgd:1"}};
  finding.tables.push_back(table("Weights averaged, and gradients summed",
                                 {{"strategy", ""},
                                  {"elements at a time", "1"},
                                  {"communication per step", "s"},
                                  {"loss of the last 8 steps", "1"},
                                  {"largest difference of a weight", "1"}},
                                 std::move(rows)));
  finding.charts.push_back(
      line_chart("averaging-losses", "Loss by step", {.label = "step", .unit = "1"},
                 {.label = "loss", .unit = "1"},
                 {loss_series(synchronous), loss_series(every), loss_series(some)}));
  return finding;
}

namespace {

/// Elements that the collectives of a graph send: those that sum, or the others.
std::int64_t elements_sent(const Graph& graph, bool sums) {
  std::int64_t elements = 0;
  for (const auto& node : graph.nodes()) {
    if (!node.op->collective()) continue;
    const auto name = node.op->name();
    const bool adds = name == AllReduce::kName || name == ReduceScatter::kName;
    if (adds != sums) continue;
    for (const auto input : node.inputs) elements += graph.spec(input).shape.elements();
  }
  return elements;
}

}  // namespace

Finding examine_model_parallel_gradients(Laboratory&) {
  const auto model = model_preset("unet-s");
  std::vector<std::vector<Json>> rows;
  std::int64_t layer_sums = 0, layer_messages = 0;
  const double parameters = parameter_bytes(model) / sizeof(float);
  for (const auto kind : {Kind::Pipeline, Kind::Replicated}) {
    const parallel::Strategy strategy = {.kind = kind};
    for (int rank = 0; rank < 2; ++rank) {
      const auto graph = rank_graph(strategy, 2, rank, model);
      const auto sums = elements_sent(graph, true), others = elements_sent(graph, false);
      rows.push_back({to_string(strategy), rank, sums, others});
      if (kind != Kind::Pipeline) continue;
      layer_sums = std::max(layer_sums, sums);
      layer_messages += others;
    }
  }
  Finding finding = {
      .verdict = judge_model_parallel_gradients(static_cast<double>(layer_sums), parameters),
      .why =
          fmt::format("unet-s, {} parameters, cut into two stages: its ranks sum {} elements in a "
                      "step, and send each other {} of activations and their gradients. Each has "
                      "other parameters, so there is no gradient to sum; it is data parallelism "
                      "that sums.",
                      parameters, layer_sums, layer_messages),
      .commands = {"triptych trace --model unet-s --mode train --batch 2 --ranks 2 --strategy "
                   "layers --json"}};
  finding.tables.push_back(
      table("Elements that the ranks' graphs send, unet-s, batch 2",
            {{"strategy", ""}, {"rank", "1"}, {"to be summed", "1"}, {"to another rank", "1"}},
            std::move(rows)));
  return finding;
}

}  // namespace triptych::studies
