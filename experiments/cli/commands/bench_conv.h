// A part of `triptych bench conv`: layers of models, and several machines at several batch sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "experiments/cli/batch_sweep.h"
#include "experiments/cli/options.h"

namespace triptych::cli {

/// Adds --layer, --backends and --link.
std::shared_ptr<SweepOptions> add_conv_sweep_options(Command& conv);

/// Puts the layer's shape into `options`; with --backends, runs and prints the sweep. Returns
/// whether that was all there is to do.
bool run_conv_sweep(const Command& conv, BenchOptions& options, const SweepOptions& sweep,
                    const Context& context);

}  // namespace triptych::cli
