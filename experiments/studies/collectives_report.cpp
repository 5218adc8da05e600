// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/collectives_report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "experiments/studies/server_schedule.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/data/synthetic.h"
#include "experiments/training/device_set.h"
#include "parallel/collectives/algorithms.h"
#include "parallel/collectives/price.h"
#include "parallel/collectives/symbolic.h"

namespace triptych::studies {
namespace {

using page::Json;

/// Numbers of ranks for which every way's price is a sum of latencies and volumes.
constexpr std::array kWorlds{2, 3, 4, 8};
constexpr int kMostRanks = kWorlds.back();
constexpr std::int64_t kElements = 16;  // of the gradients, shown
constexpr std::string_view kServer = "server";
constexpr std::int64_t kDivisible = 840;  // elements, by 1 to 8 ranks

/// Inputs and weights of a training step with one picture per rank.
struct GradientStep {
  ModelConfig model = model_preset("unet-s");
  std::string parameter;
  std::int64_t bytes = 0;                     ///< of all gradients
  std::vector<std::vector<float>> gradients;  ///< of each rank, the first kElements of `parameter`
};

GradientStep run_step() {
  GradientStep step;
  auto training = build_training_graph(step.model, {.batch = 1});
  step.parameter = training.parameters.front();
  for (const auto& name : training.parameters)
    step.bytes += training.graph.spec(training.graph.find(name)).bytes();
  training.graph.mark_output("gradient", training.graph.find(training.parameter_gradients.front()));
  const training::DeviceSet machine({.backend = "cpu"});
  const auto data = segmentation::synthetic_dataset(
      {.size = {step.model.size, step.model.size}, .classes = step.model.classes}, kMostRanks);
  const segmentation::Batcher batcher(
      data, normalization_of(data),
      {.augment = {.height = step.model.size, .width = step.model.size}});
  for (int rank = 0; rank < kMostRanks; ++rank) {
    StateStore states(machine.device());  // the same weights again
    Executor executor(make_plan(training.graph.clone(), machine.devices(), machine.plan_options()),
                      states);
    const auto batch = batcher.draw(rank, 1);
    executor.set_input("x", batch.x);
    executor.set_input("target", batch.y);
    executor.set_input("learning_rate", scalar_tensor(0.0F));
    executor.run();
    const auto gradient = executor.output("gradient");
    const auto values = gradient.as<float>();
    step.gradients.emplace_back(values.begin(), values.begin() + kElements);
  }
  return step;
}

Json place_json(const parallel::BufferRange& place) {
  return {place.memory == parallel::Memory::Data ? "data" : "scratch", place.range.begin,
          place.range.end};
}

Json schedule_json(const parallel::Schedule& schedule) {
  using Kind = parallel::ScheduleStep::Kind;
  static constexpr std::array<std::pair<Kind, std::string_view>, 6> names{
      {{Kind::Send, "send"},
       {Kind::Receive, "receive"},
       {Kind::ReceiveAdd, "receive-add"},
       {Kind::Copy, "copy"},
       {Kind::Add, "add"},
       {Kind::Wait, "wait"}}};
  Json steps = Json::array();
  for (const auto& step : schedule.steps) {
    const auto name =
        std::ranges::find(names, step.kind, &std::pair<Kind, std::string_view>::first);
    Json entry = {name->second, step.peer, step.send};
    for (const auto* place : {&step.place, &step.source})
      for (const auto& part : place_json(*place)) entry.push_back(part);
    steps.push_back(std::move(entry));
  }
  return steps;
}

/// The sum that a term stands for, added up in its order.
float value_of(const parallel::Terms& terms, parallel::TermId term,
               const std::vector<std::vector<float>>& gradients, std::size_t element) {
  const auto& node = terms.node(term);
  if (node.rank >= 0) return gradients[static_cast<std::size_t>(node.rank)][element];
  return value_of(terms, node.left, gradients, element) +
         value_of(terms, node.right, gradients, element);
}

Json world_json(std::string_view way, int ranks, const std::vector<std::vector<float>>& gradients) {
  const auto schedules = summing_schedules(way, ranks, kElements);
  parallel::Terms terms;
  const auto ends = run_symbolically(schedules, kElements, terms);
  const auto price = price_of_sum(way, ranks);
  Json world = {
      {"ranks", ranks},          {"latencies", price.latencies}, {"volumes", price.volumes},
      {"chunks", Json::array()}, {"schedules", Json::array()},   {"sums", Json::array()},
      {"orders", Json::array()}};
  for (int rank = 0; rank < ranks; ++rank) {
    const auto chunk = parallel::part_of({0, kElements}, rank, ranks);
    world["chunks"].push_back({chunk.begin, chunk.end});
  }
  for (const auto& schedule : schedules) world["schedules"].push_back(schedule_json(schedule));
  for (std::size_t i = 0; i < static_cast<std::size_t>(kElements); ++i) {
    world["sums"].push_back(value_of(terms, ends[0][i], gradients, i));
    world["orders"].push_back(terms.text(ends[0][i]));
  }
  return world;
}

}  // namespace

std::vector<std::string_view> summing_ways() {
  std::vector<std::string_view> names;
  for (const auto algorithm : parallel::algorithms_of(parallel::Collective::AllReduce))
    if (algorithm != parallel::Algorithm::Library) names.push_back(to_string(algorithm));
  names.push_back(kServer);
  return names;
}

std::vector<parallel::Schedule> summing_schedules(std::string_view way, int ranks,
                                                  std::int64_t elements) {
  if (way == kServer) return server_schedules(ranks, elements);
  std::vector<parallel::Schedule> schedules;
  schedules.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    schedules.push_back(make_schedule(parallel::Collective::AllReduce,
                                      parallel::algorithm_from_string(way),
                                      {.world_size = ranks,
                                       .rank = rank,
                                       .elements = elements,
                                       .segment_elements = std::max<std::int64_t>(elements, 1)}));
  return schedules;
}

double modelled_seconds(std::string_view way, int ranks, std::int64_t bytes, double alpha_s,
                        double bytes_per_s) {
  const auto net = parallel::Interconnect::switched(ranks, {alpha_s, bytes_per_s});
  const auto elements = bytes / static_cast<std::int64_t>(sizeof(float));
  return parallel::price(summing_schedules(way, ranks, elements), sizeof(float), net).seconds;
}

SumPrice price_of_sum(std::string_view way, int ranks) {
  constexpr auto bytes = kDivisible * static_cast<std::int64_t>(sizeof(float));
  constexpr double no_time = 1e30;  // bytes per second
  const double latencies = modelled_seconds(way, ranks, bytes, 1, no_time);
  const double volumes = modelled_seconds(way, ranks, bytes, 0, static_cast<double>(bytes));
  return {.latencies = std::round(latencies), .volumes = volumes};
}

page::Json collectives_report() {
  const auto step = run_step();
  Json report = {{"model", step.model.name},    {"parameter", step.parameter},
                 {"elements", kElements},       {"bytes", step.bytes},
                 {"gradients", step.gradients}, {"ways", Json::array()}};
  for (const auto way : summing_ways()) {
    Json worlds = Json::array();
    for (const int ranks : kWorlds) worlds.push_back(world_json(way, ranks, step.gradients));
    report["ways"].push_back({{"name", way}, {"worlds", std::move(worlds)}});
  }
  return report;
}

}  // namespace triptych::studies
