// Instruments that several claims need: measurements of this machine, made once, and ways to ask
// the others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "experiments/machines/machine_figures.h"
#include "experiments/measure/batch_sweep.h"
#include "experiments/measure/bench_problems.h"
#include "systolic/isa/simulator.h"

namespace triptych::studies {

class Laboratory {
 public:
  /// `quick`: smaller problems, about a third of the time.
  explicit Laboratory(bool quick) : quick_(quick) {}

  bool quick() const { return quick_; }

  /// This CPU: its float32 peak ("f32"), and copy and triad by level, measured at the first call.
  const machines::MachineFigures& cpu();

 private:
  bool quick_;
  std::optional<machines::MachineFigures> cpu_;
};

/// Seconds of a problem on a machine. The median of about `seconds` of runs.
double measure(const measure::Problem& problem, const training::DeviceSet& machine, int repeats);

/// Counts of a problem in an emulated GPU's memories.
KernelCounterTable count(const measure::Problem& problem);

/// Bytes that kernels move between global memory and the chip, in whole sectors.
double sector_bytes(const KernelCounterTable& kernels);

/// y = a b, [m, k] x [k, n].
Graph product_graph(std::int64_t m, std::int64_t k, std::int64_t n);

/// Counters of a product on a systolic machine, by the twin's clock. Nothing is computed.
mmu::Counters estimate_product(const std::string& machine, const Graph& product);

/// Counters of a product that runs, on the RTL or the twin.
mmu::Counters run_product(const std::string& machine, mmu::Simulation simulate,
                          const Graph& product);

/// Used PE-cycles over all.
double utilisation(const mmu::Counters& counters, const mmu::MachineConfig& machine);

}  // namespace triptych::studies
