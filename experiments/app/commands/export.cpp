// `triptych export`: a trained model as an ONNX file, for other programs and other machines.
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>

#include "core/base/speech.h"
#include "core/io/own_files.h"
#include "core/io/safetensors.h"
#include "core/onnx/export_graph.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/app/saved_run.h"
#include "experiments/page/json.h"
#include "experiments/training/run_export.h"

namespace triptych::app {
namespace {

struct ExportOptions {
  std::string run;
  std::string onnx;
  training::RunExportOptions file;
  std::string safetensors;
  std::string names;
  bool previous = false;
  bool names_pixels = false;  ///< --pixels was given

  const std::string& path() const { return onnx.empty() ? safetensors : onnx; }
};

void write_weights(const ExportOptions& options, const training::SavedRun& run) {
  const auto names = options.names.empty() ? training::NameMap() : training::NameMap(options.names);
  const auto weights = training::named_weights(run, names);
  write_own_file(options.safetensors,
                 [&](AtomicFile& file) { return write_safetensors(file, sources_of(weights)); });
}

void export_run(const ExportOptions& options, const Context& context) {
  if (options.onnx.empty() == options.safetensors.empty())
    throw InvalidArgument("export writes one file; give --onnx FILE or --safetensors FILE");
  require_own_file(options.path());
  const auto run = load_noted_run(options.run, options.previous);
  const bool arrays = training::is_on_arrays(run);
  if (arrays && options.names_pixels)
    throw InvalidArgument(
        "the run is on arrays, which its network takes as they are; leave out --pixels");
  if (options.onnx.empty()) {
    write_weights(options, run);
  } else {
    write_own_file(options.onnx, training::encode_run(run, options.file));
  }
  if (context.json) {
    print_document("export",
                   page::Json::array({{{"run", options.run},
                                       {"file", options.path()},
                                       {"bytes", std::filesystem::file_size(options.path())},
                                       {"pixels", options.onnx.empty() || arrays
                                                      ? page::Json()
                                                      : page::Json(name_of(options.file.pixels))},
                                       {"step", run.losses.size()}}}));
    return;
  }
  print_text("the weights of step {} written to {}\n", run.losses.size(), options.path());
}

}  // namespace

void add_export_command(Command& app, Context& context) {
  auto options = std::make_shared<ExportOptions>();
  auto command = app.add_subcommand("export", "Export a trained model as ONNX or safetensors");
  command.add_option("run", options->run, "run folder").required();
  command.add_option("--onnx", options->onnx, "ONNX file to write").output_file();
  command
      .add_option("--opset", options->file.opset,
                  "ONNX operator set (default: 17, or that of the imported file)")
      .only_with("--onnx")
      .check(whole_from(onnx::kFirstExportOpset, onnx::kLastExportOpset));
  command
      .add_option("--pixels", options->file.pixels,
                  "pixels that the model takes: uint8 (0 to 255), unit (0 to 1), or normalized "
                  "like those of the network")
      .only_with("--onnx")
      .capture_default_str();
  command
      .add_option("--safetensors", options->safetensors, "safetensors file with only the weights")
      .output_file();
  command
      .add_option("--names", options->names,
                  "JSON file that maps names of weights of the model to names in the file")
      .only_with("--safetensors");
  command.add_flag("--previous", options->previous, "use the checkpoint before the newest");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, command, &context] {
    options->names_pixels = command.count("--pixels") > 0;
    export_run(*options, context);
  });
}

}  // namespace triptych::app
