// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/run_onnx.h"

#include <fmt/core.h>

#include "core/base/speech.h"
#include "core/graph/passes/passes.h"
#include "core/io/folder_lock.h"
#include "core/io/npy.h"
#include "core/io/own_files.h"
#include "core/runtime/executor.h"
#include "experiments/app/output.h"
#include "experiments/measure/model_plan.h"
#include "experiments/page/json.h"

namespace triptych::app {
namespace {

/// Refuses a plan that needs more memory than the user allows, before any is taken.
Plan bounded_plan(Graph graph, const DeviceSet& machine, std::int64_t memory) {
  auto plan = make_plan(std::move(graph), machine.devices(), machine.plan_options());
  std::size_t bytes = 0;
  for (std::size_t d = 0; d < plan.devices.size(); ++d) bytes += plan.total_bytes(d);
  if (!plan.devices[0]->reads_host_memory()) {
    for (const auto& value : plan.graph.values()) {
      if (value.data != nullptr) bytes += value.spec.bytes();  // the host's own
    }
  }
  say_detail(fmt::format("the run needs {} MiB of memory", (bytes >> 20) + 1));
  if (bytes > static_cast<std::size_t>(memory)) {
    throw InvalidArgument(fmt::format(
        "the run needs {} MiB of memory, --max-memory allows {}; raise it if the file is "
        "trusted",
        (bytes >> 20) + 1, memory >> 20));
  }
  return plan;
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
std::vector<std::string> outputs_left(const OwnFiles& own, std::size_t count) {
  std::vector<std::string> left;
  for (; own.lists(output_file(count)); ++count) left.push_back(output_file(count));
  return left;
}

}  // namespace

void run_onnx(const RunOnnxOptions& options, const training::ExecutionConfig& machine,
              const Context& context) {
  const auto model = options.model.load();
  auto import_options = options.model.import_options();
  import_options.given = load_inputs(model, options.inputs, import_options.memory);
  const auto files = output_files(model);
  const FolderLock lock(options.folder);
  OwnFiles own(options.folder);
  const auto left = outputs_left(own, files.size());
  for (const auto* names : {&files, &left})
    for (const auto& file : *names) own.require(file);
  auto imported = onnx::import_model(model, import_options);
  if (machine.contract == Contract::Int8) measure::require_integer_products(imported.graph);
  auto graph = optimize(std::move(imported.graph), {.inference = true});
  const DeviceSet devices(machine);
  StateStore states(devices.device());
  Executor executor(bounded_plan(std::move(graph), devices, import_options.memory), states);
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
    own.write(files[i], output.is_double ? encode_npy_widened(tensor) : encode_npy(tensor));
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
  fmt::print("{} outputs written to {}\n", files.size(), options.folder);
}

}  // namespace triptych::app
