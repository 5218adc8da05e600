// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/commands/bench_conv.h"

#include "core/base/speech.h"
#include "experiments/app/batch_sweep_report.h"
#include "experiments/app/output.h"
#include "experiments/machines/array_machine.h"

namespace triptych::app {

std::shared_ptr<measure::SweepOptions> add_conv_sweep_options(Command& conv) {
  auto sweep = std::make_shared<measure::SweepOptions>();
  auto layer =
      conv.add_option("--layer", sweep->layer,
                      "a convolution of a model instead of shape and window: unet-l:down1.conv1");
  layer.not_with("--shape").not_with("--window");
  auto backends =
      conv.add_option("--backends", sweep->backends,
                      "machines beside each other: cpu,cuda,systolic; speedups are over the first");
  for (const auto* other : {"--backend", "--kernel", "--layers", "--source"}) {
    backends.not_with(other);
  }
  conv.add_option("--link", sweep->link,
                  "of --backends: what a simulated machine's transfers are modelled by")
      .only_with("--backends")
      .capture_default_str();
  return sweep;
}

bool run_conv_sweep(const Command& conv, measure::BenchOptions& options,
                    const measure::SweepOptions& sweep, const Context& context) {
  if (!sweep.layer.empty()) measure::take_layer(sweep.layer, options);
  if (sweep.backends.empty()) return false;
  // All machines compute the same; the array has no float32.
  if (conv.count("--contract") == 0) options.machine.contract = Contract::Bf16;
  const auto result = measure::sweep_batches(options, sweep);
  for (const auto& machine : result.machines) {
    auto config = options.machine;
    config.backend = machine.backend;
    say_note(machines::clock_note(config));
  }
  if (context.json) {
    print_document("bench conv", to_json(result));
  } else {
    print_sweep(result);
  }
  return true;
}

}  // namespace triptych::app
