// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_ranks.h"

#include <fmt/core.h>

#include "core/base/error.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/array_all_reduce.h"

namespace triptych::measure {
namespace {

/// Gradients are as many as all parameters.
std::int64_t gradient_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const auto state : graph.values_of(ValueKind::State))
    if (graph.value(state).role == StateRole::Parameter)
      bytes += static_cast<std::int64_t>(graph.spec(state).bytes());
  return bytes;
}

/// 0 where the device has not counted it.
std::uint64_t count_of(const Device& device, const std::string& name) {
  const auto counters = device.counters();
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : static_cast<std::uint64_t>(found->second);
}

}  // namespace

std::int64_t batch_of_a_rank(const training::ExecutionConfig& config, std::int64_t batch) {
  const int ranks = config.parallel.ranks;
  const auto machine = machines::array_of(config);
  check_arrays(machine, static_cast<std::size_t>(ranks));
  if (batch % ranks != 0)
    throw InvalidArgument(fmt::format(
        "a batch of {} on {} ranks; give a batch that is a multiple of the ranks", batch, ranks));
  return batch / ranks;
}

ArrayRanks time_array_ranks(Executor& executor, const training::DeviceSet& machine) {
  const Device& device = machine.device();
  const auto array = machines::array_of(machine.config());
  ArrayRanks result{.ranks = machine.config().parallel.ranks, .clock_mhz = array.clock_mhz};
  const auto cycles = count_of(device, "mmu_cycles");
  const auto waits = count_of(device, "mmu_arbiter_wait_cycles");
  executor.run();
  result.compute_cycles = count_of(device, "mmu_cycles") - cycles;
  result.wait_cycles = count_of(device, "mmu_arbiter_wait_cycles") - waits;
  result.all_reduce_bytes = gradient_bytes(executor.plan().graph);
  const auto sum =
      simulate_all_reduce(array, parallel::Algorithm::Ring, result.ranks, result.all_reduce_bytes);
  TRIPTYCH_ASSERT(sum.right);
  result.all_reduce_cycles = sum.cycles;
  return result;
}

}  // namespace triptych::measure
