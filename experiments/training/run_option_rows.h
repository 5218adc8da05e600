// The rows of run_options.h, in three parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/training/run_options.h"

namespace triptych::training::rows {

/// Most MiB that an option of memory takes: 16 TiB.
inline constexpr std::int64_t kMaxMemoryMib = std::int64_t{1} << 24;

/// Images, arrays and the model.
std::vector<RunOption> data();

/// Learning, length, evaluation, stored files.
std::vector<RunOption> learning();

/// Machine, ranks, options of every command.
std::vector<RunOption> machine();

}  // namespace triptych::training::rows
