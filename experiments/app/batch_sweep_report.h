// A sweep over batch sizes as tables and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/measure/batch_sweep.h"
#include "experiments/page/json.h"

namespace triptych::app {

/// One result per machine.
page::Json to_json(const measure::BatchSweep& sweep);
void print_sweep(const measure::BatchSweep& sweep);

/// "from batch 8 on", "at every batch from 1 to 64", "never up to 64".
std::string break_even_text(const std::vector<std::int64_t>& batches,
                            const std::optional<std::int64_t>& batch);

}  // namespace triptych::app
