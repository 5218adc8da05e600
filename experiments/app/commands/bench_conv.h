// A part of `triptych bench conv`: layers of models, and several machines at several batch sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "experiments/app/options.h"
#include "experiments/measure/batch_sweep.h"

namespace triptych::app {

/// Adds --layer, --backends and --link.
std::shared_ptr<measure::SweepOptions> add_conv_sweep_options(Command& conv);

/// Puts the layer's shape into `options`. With --backends, runs and prints the sweep. Returns
/// whether that was all there is to do.
bool run_conv_sweep(const Command& conv, measure::BenchOptions& options,
                    const measure::SweepOptions& sweep, const Context& context);

}  // namespace triptych::app
