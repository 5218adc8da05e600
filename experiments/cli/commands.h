// The commands of the program. Each adds itself with its options; its callback runs when it is
// chosen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/cli/options.h"

namespace triptych::cli {

void add_devices_command(CLI::App& app, Context& context);
void add_doctor_command(CLI::App& app, Context& context);
void add_train_command(CLI::App& app, Context& context);
void add_run_command(CLI::App& app, Context& context);
void add_bench_command(CLI::App& app, Context& context);
/// A part of `bench`.
CLI::App* add_all_reduce_bench(CLI::App& bench, Context& context);
void add_launch_command(CLI::App& app, Context& context);
void add_quantize_command(CLI::App& app, Context& context);
void add_explain_command(CLI::App& app, Context& context);
void add_trace_command(CLI::App& app, Context& context);
void add_check_command(CLI::App& app, Context& context);
void add_machine_command(CLI::App& app, Context& context);
void add_synthesize_command(CLI::App& app, Context& context);

}  // namespace triptych::cli
