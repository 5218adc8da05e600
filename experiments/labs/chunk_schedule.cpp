// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/chunk_schedule.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "parallel/collectives/price.h"

namespace triptych::labs {
namespace {

using page::Json;
using parallel::BufferRange;
using parallel::Interconnect;
using parallel::Memory;

constexpr int kMostRanks = 1000;

Range range_of(const ChunkMessage& message, int world_size, std::int64_t elements) {
  const Range all = {0, elements};
  return message.chunk == kAllChunks ? all : parallel::part_of(all, message.chunk, world_size);
}

/// A step of one rank: it sends, receives into scratch memory, and then copies to the destination.
/// So a rank sends the content from before the step.
void add_step(parallel::ScheduleBuilder& builder, const ChunkStep& step, int rank, int world_size,
              std::int64_t elements) {
  for (const auto& each : step) {
    if (each.from == rank)
      builder.send(each.to, {Memory::Data, range_of(each, world_size, elements)});
  }
  std::int64_t used = 0;
  for (const auto& each : step) {
    if (each.to != rank) continue;
    const auto range = range_of(each, world_size, elements);
    const BufferRange scratch = {Memory::Scratch, {used, used + range.size()}};
    used += range.size();
    builder.receive(each.from, scratch);
    if (each.adds) {
      builder.add({Memory::Data, range}, scratch);
    } else {
      builder.copy({Memory::Data, range}, scratch);
    }
  }
}

ChunkMessage message_of(const Json& values, int world_size) {
  const ChunkMessage message = {.from = values.at(0).get<int>(),
                                .to = values.at(1).get<int>(),
                                .chunk = values.at(2).get<int>(),
                                .adds = values.at(3).get<bool>()};
  const auto is_rank = [&](int rank) { return rank >= 0 && rank < world_size; };
  if (!is_rank(message.from) || !is_rank(message.to) ||
      (message.chunk != kAllChunks && !is_rank(message.chunk)))
    throw InvalidArgument(
        fmt::format("the message {} has a rank or chunk beyond {}", values.dump(), world_size - 1));
  return message;
}

std::vector<ChunkStep> steps_of(const Json& request, int world_size) {
  std::vector<ChunkStep> steps;
  for (const auto& messages : request.at("steps")) {
    auto& step = steps.emplace_back();
    for (const auto& each : messages) step.push_back(message_of(each, world_size));
  }
  return steps;
}

}  // namespace

std::vector<parallel::Schedule> to_schedules(const std::vector<ChunkStep>& steps, int world_size,
                                             std::int64_t elements) {
  std::vector<parallel::Schedule> schedules;
  for (int rank = 0; rank < world_size; ++rank) {
    parallel::ScheduleBuilder builder;
    for (const auto& step : steps) add_step(builder, step, rank, world_size, elements);
    schedules.push_back(builder.finish());
  }
  return schedules;
}

double chunk_schedule_seconds(const Json& request) {
  const auto world_size = request.at("world_size").get<int>();
  if (world_size < 1 || world_size > kMostRanks)
    throw InvalidArgument(fmt::format("{} ranks; a price is for 1 to {}", world_size, kMostRanks));
  const auto& values = request.at("link");
  const parallel::Link link = {.alpha_s = values.at(0).get<double>(),
                               .bytes_per_s = values.at(1).get<double>()};
  const auto wires = request.at("wires") == "ring" ? Interconnect::ring(world_size, link)
                                                   : Interconnect::switched(world_size, link);
  std::vector<std::vector<parallel::Delay>> delays(static_cast<std::size_t>(world_size));
  const auto late_s = request.at("late_s").get<double>();
  if (late_s > 0 && world_size > 1) delays[1] = {{.before = 0, .seconds = late_s}};
  const auto schedules = to_schedules(steps_of(request, world_size), world_size,
                                      request.at("elements").get<std::int64_t>());
  return parallel::price(schedules, sizeof(float), wires, 0, delays).seconds;
}

}  // namespace triptych::labs
