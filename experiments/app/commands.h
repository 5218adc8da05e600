// The commands of the program. Each function adds the options of its command, and the callback that
// runs when it is chosen.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/app/options.h"

namespace triptych::app {

void describe_devices(Command& command, Context& context);
void describe_doctor(Command& command, Context& context);
void describe_train(Command& command, Context& context);
void describe_run(Command& command, Context& context);
void describe_evaluate(Command& command, Context& context);
void describe_cross_validate(Command& command, Context& context);
void describe_find_lr(Command& command, Context& context);
void describe_bench(Command& command, Context& context);
/// A part of `bench`.
Command add_all_reduce_bench(Command& bench, Context& context);
void describe_calibrate(Command& command, Context& context);
void describe_import(Command& command, Context& context);
void describe_export(Command& command, Context& context);
void describe_launch(Command& command, Context& context);
void describe_quantize(Command& command, Context& context);
void describe_explain(Command& command, Context& context);
void describe_trace(Command& command, Context& context);
void describe_compare(Command& command, Context& context);
/// A part of `mmu`.
Command add_mmu_test(Command& mmu, Context& context);
void describe_machine(Command& command, Context& context);
void describe_mmu(Command& command, Context& context);
void describe_synthesize(Command& command, Context& context);
void describe_data(Command& command, Context& context);
void describe_page(Command& command, Context& context);
void describe_help(Command& command, Context& context);
void describe_version(Command& command, Context& context);
void describe_completion(Command& command, Context& context);

/// All commands, each with its name and help.
void add_commands(Command& app, Context& context);

}  // namespace triptych::app
