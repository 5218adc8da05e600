// Operand reuse: how many words each level of a machine's memory delivers per multiply-add of the
// convolutions and matrix products of a training step. Also the energy of these and of the rest of
// the step by an energy table (experiments/machines/energy.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/compare/layers.h"
#include "experiments/compare/machine_request.h"
#include "experiments/machines/array_energy.h"

namespace triptych::compare {

/// The price of a level's bits. One without a price only shows how operands are reused.
enum class LevelPrice { None, OnChip, Dram };

/// Words go up from a level when it is read. "accesses" count both ways.
struct LevelUse {
  std::string level;  ///< "L1", "shared memory", "unified buffer", "DRAM", ...
  double reads = 0;   ///< words: 4 bytes each, of the array's operands 2
  double bytes = 0;   ///< read and written
  LevelPrice price = LevelPrice::None;
  double capacity = 0;  ///< bytes of a memory on the chip
  TimeKind kind = TimeKind::Modelled;
  std::string how = {};  ///< "blocking", "counted by the emulator", "RTL counters" ...
};

/// Demand of one step's multiply-adds on the memories.
struct Reuse {
  std::vector<LevelUse> levels;  ///< the nearest to the arithmetic first
  double macs = 0;               ///< that the reads belong to
  double covers = 0;             ///< share of the step's multiply-adds that they are
  double images = 1;             ///< of the batch that was looked at
  double executed_macs = 0;      ///< of them, those in the padding included. 0: not known
  double lanes = 0;              ///< multiply-adds of one instruction. 0: none is fetched for them
  std::optional<mmu::MachineConfig> array;  ///< prices its own actions instead of the levels
};

/// Reuse on a CPU, by the blocking of the kernels that were chosen. Nothing where none is modelled.
std::optional<Reuse> reuse_by_blocking(const StepAnatomy& anatomy, std::int64_t batch);
/// Reuse on a systolic array, from its counters in the step.
std::optional<Reuse> reuse_of_array(const StepAnatomy& anatomy, std::int64_t batch,
                                    const training::ExecutionConfig& config);
/// Reuse on a GPU, from the emulator's counts while it runs the multiply-adds of one image's step:
/// those with the least work first, for about ten seconds. Nothing where the emulator is not in
/// this build.
std::optional<Reuse> reuse_of_gpu(const training::RunConfig& run,
                                  const training::ExecutionConfig& config);

/// The energy of one image of the step (modelled): that of an array's counted actions, or of the
/// sampled multiply-adds, scaled up to all of them. For the other nodes each operand once from the
/// memory outside the chip.
std::vector<machines::EnergyPart> energy_per_image(const Reuse& reuse, const StepAnatomy& anatomy,
                                                   std::int64_t batch,
                                                   const machines::EnergyTable& table);

}  // namespace triptych::compare
