// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/bandwidth.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/runtime/executor.h"

namespace triptych::measure {
namespace {

constexpr int kSamples = 9, kRuns = 20;
constexpr std::int64_t kLargeElements = std::int64_t{1} << 26;

/// Seconds of the fastest of several runs of an elementwise operator on arrays of `elements`.
double seconds_of(Device& device, const OpPtr& op, int inputs, std::int64_t elements) {
  Graph graph;
  std::vector<ValueId> values;
  values.reserve(static_cast<std::size_t>(inputs));
  for (int i = 0; i < inputs; ++i) {
    values.push_back(
        graph.add_input(fmt::format("x{}", i), TensorSpec{DType::F32, Shape{elements}}));
  }
  graph.mark_output("y", graph.add_node(op, values).front());
  StateStore states(device);
  Executor executor(make_plan(std::move(graph), {&device}), states);
  executor.run();
  double best = std::numeric_limits<double>::infinity();
  for (int s = 0; s < kSamples; ++s) {
    const double start = device.elapsed().seconds;
    for (int r = 0; r < kRuns; ++r) executor.run();
    best = std::min(best, (device.elapsed().seconds - start) / kRuns);
  }
  return best;
}

LevelBandwidth level_by_kernels(Device& device, const char* name, double capacity,
                                std::int64_t elements) {
  const double bytes = static_cast<double>(elements) * sizeof(float);
  return {.level = name,
          .capacity_bytes = capacity,
          .array_bytes = 3 * bytes,
          .copy_bytes_per_s =
              2 * bytes / seconds_of(device, make_op(Unary(UnaryKind::Relu)), 1, elements),
          .triad_bytes_per_s =
              3 * bytes / seconds_of(device, make_op(Binary(BinaryKind::Add)), 2, elements)};
}

}  // namespace

std::vector<LevelBandwidth> measure_bandwidths(Device& device) {
  auto levels = device.level_bandwidths();
  if (!levels.empty()) return levels;
  const auto& info = device.info();
  if (info.time_kind != TimeKind::Measured || info.facts.emulation) {
    throw UnsupportedError(fmt::format(
        "{} says nothing of its memory's bandwidth, and times of its kernels are not a machine's; "
        "choose a real device, or a published one of experiments/machines/devices",
        info.name));
  }
  if (const auto l2 = static_cast<double>(info.facts.l2_bytes.value_or(0)); l2 > 0) {
    const auto elements = static_cast<std::int64_t>(l2 / 2 / 3 / sizeof(float));
    levels.push_back(level_by_kernels(device, "L2", l2, elements));
  }
  levels.push_back(level_by_kernels(
      device, "memory", static_cast<double>(info.facts.memory_bytes.value_or(0)), kLargeElements));
  return levels;
}

double best_of(const LevelBandwidth& level) {
  return std::max(level.copy_bytes_per_s, level.triad_bytes_per_s);
}

}  // namespace triptych::measure
