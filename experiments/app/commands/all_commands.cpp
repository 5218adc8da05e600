// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/commands.h"
#include "experiments/app/parts.h"

namespace triptych::app {

void add_commands(Command& app, Context& context) {
  add_devices_command(app, context);
  add_doctor_command(app, context);
  add_train_command(app, context);
  add_run_command(app, context);
  add_evaluate_command(app, context);
  add_cross_validate_command(app, context);
  add_find_lr_command(app, context);
  add_bench_command(app, context);
  add_calibrate_command(app, context);
  add_compare_command(app, context);
  add_import_command(app, context);
  add_export_command(app, context);
  add_launch_command(app, context);
  add_explain_command(app, context);
  add_quantize_command(app, context);
  add_trace_command(app, context);
  add_check_command(app, context);
  add_kernel_command(app, context);
  add_lab_command(app, context);
  add_machine_command(app, context);
  add_mmu_command(app, context);
  add_synthesize_command(app, context);
  add_data_command(app, context);
  add_reproduce_command(app, context);
  add_page_command(app, context);
  add_help_command(app, context);
  add_version_command(app, context);
  add_completion_command(app, context);
}

}  // namespace triptych::app
