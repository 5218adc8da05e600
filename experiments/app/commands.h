// The commands of the program. Each adds itself with its options. Its callback runs when it is
// chosen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/app/options.h"

namespace triptych::app {

void add_devices_command(Command& app, Context& context);
void add_doctor_command(Command& app, Context& context);
void add_train_command(Command& app, Context& context);
void add_run_command(Command& app, Context& context);
void add_evaluate_command(Command& app, Context& context);
void add_cross_validate_command(Command& app, Context& context);
void add_find_lr_command(Command& app, Context& context);
void add_bench_command(Command& app, Context& context);
/// A part of `bench`.
Command add_all_reduce_bench(Command& bench, Context& context);
void add_calibrate_command(Command& app, Context& context);
void add_import_command(Command& app, Context& context);
void add_export_command(Command& app, Context& context);
void add_launch_command(Command& app, Context& context);
void add_quantize_command(Command& app, Context& context);
void add_explain_command(Command& app, Context& context);
void add_trace_command(Command& app, Context& context);
void add_compare_command(Command& app, Context& context);
/// A part of `mmu`.
Command add_mmu_test(Command& mmu, Context& context);
void add_machine_command(Command& app, Context& context);
void add_mmu_command(Command& app, Context& context);
void add_synthesize_command(Command& app, Context& context);
void add_data_command(Command& app, Context& context);
void add_page_command(Command& app, Context& context);
void add_help_command(Command& app, Context& context);
void add_version_command(Command& app, Context& context);
void add_completion_command(Command& app, Context& context);

/// All of these.
void add_commands(Command& app, Context& context);

}  // namespace triptych::app
