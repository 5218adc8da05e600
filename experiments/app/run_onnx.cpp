// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/run_onnx.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/console.h"
#include "core/base/memory_budget.h"
#include "core/graph/passes/passes.h"
#include "core/io/folder_lock.h"
#include "core/io/npy.h"
#include "core/io/output_ledger.h"
#include "core/runtime/executor.h"
#include "experiments/app/output.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/model_plan.h"
#include "experiments/page/json.h"

namespace triptych::app {
namespace {

/// Refuses a plan that needs more memory than is available, before any allocation. It counts the
/// arenas, copies on the devices and the largest output, which is copied when it is written.
void require_memory(const Plan& plan) {
  std::size_t bytes = 0;
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    bytes += plan.arena_bytes[d] + plan.state_bytes[d];
    if (!plan.devices[d]->reads_host_memory()) bytes += plan.constant_bytes[d];
  }
  std::size_t largest = 0;
  for (const auto& output : plan.graph.outputs())
    largest = std::max(largest, plan.graph.spec(output.value).bytes());
  say_detail(fmt::format("the run needs {} MiB of memory", ((bytes + largest) >> 20) + 1));
  memory_budget().require(bytes + largest, "the run");
}

/// The type in an output's file: no NumPy has bf16.
std::string_view dtype_in_file(const onnx::ModelValue& output, const Tensor& tensor) {
  if (output.is_double) return "f64";
  return to_string(tensor.dtype() == DType::BF16 ? DType::F32 : tensor.dtype());
}

std::string output_file(std::size_t number) { return fmt::format("output_{}.npy", number); }

/// Names of the files that hold the model's outputs.
std::vector<std::string> output_files(const onnx::Model& model) {
  std::vector<std::string> files;
  for (std::size_t i = 0; i < model.outputs.size(); ++i) files.push_back(output_file(i));
  return files;
}

/// Outputs that an earlier run, of a model with more of them, left in the folder.
std::vector<std::string> outputs_left(const OutputLedger& own, std::size_t count) {
  std::vector<std::string> left;
  for (; own.lists(output_file(count)); ++count) left.push_back(output_file(count));
  return left;
}

}  // namespace

void run_onnx(const RunOnnxOptions& options, const training::ExecutionConfig& machine,
              const Context& context) {
  const auto model = options.model.load();
  auto import_options = options.model.import_options();
  import_options.given = load_inputs(model, options.inputs);
  const auto files = output_files(model);
  const FolderLock lock(options.folder);
  OutputLedger own(options.folder);
  const auto left = outputs_left(own, files.size());
  for (const auto* names : {&files, &left})
    for (const auto& file : *names) own.require(file);
  auto imported = onnx::import_model(model, import_options);
  if (machine.contract == Contract::Int8) measure::require_integer_products(imported.graph);
  auto graph = optimize(std::move(imported.graph), {.inference = true});
  say_note(machines::clock_note(machine));
  const DeviceSet devices(machine);
  StateStore states(devices.device());
  auto plan = make_plan(std::move(graph), devices.devices(), devices.plan_options());
  require_memory(plan);
  Executor executor(std::move(plan), states);
  for (const auto& [name, tensor] : import_options.given) executor.set_input(name, *tensor);
  const double start = devices.device().elapsed().seconds;
  executor.run();
  const Duration time = {devices.device().elapsed().seconds - start,
                         devices.device().info().time_kind};
  for (const auto& file : left) own.remove(file);
  page::Json outputs = page::Json::array();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& output = model.outputs[i];
    const auto tensor = executor.output(output.name);
    const auto draft = own.begin(files[i]);
    own.finish(files[i], *draft, write_npy(*draft, tensor, output.is_double));
    outputs.push_back({{"name", output.name},
                       {"file", (std::filesystem::path(options.folder) / files[i]).string()},
                       {"dtype", dtype_in_file(output, tensor)},
                       {"shape", tensor.shape().dims()}});
  }
  if (context.json) {
    print_document("run", page::Json::array({{{"model", options.model.file},
                                              {"outputs", std::move(outputs)},
                                              {"time", page::time_json(time)}}}));
    return;
  }
  print_text("{} written to {}\n", counted(std::ssize(files), "output"), options.folder);
}

}  // namespace triptych::app
