// `triptych export`: a trained model as an ONNX file, for other programs and other machines.
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string_view>

#include "core/base/console.h"
#include "core/io/output_ledger.h"
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
  std::string out;
  training::RunExportOptions file;
  std::string names;
  bool previous = false;
  bool names_pixels = false;  ///< True if --pixels was given

  bool is_onnx() const { return out.ends_with(".onnx"); }
};

constexpr std::array<std::string_view, 2> kOfOnnx = {"--opset", "--pixels"};
constexpr std::array<std::string_view, 1> kOfSafetensors = {"--names"};

/// Throws InvalidArgument for a file of another kind and for options of the other kind.
void require_kind(const ExportOptions& options, const Command& command) {
  if (options.is_onnx()) return command.refuse(kOfSafetensors, "an ONNX file");
  if (!options.out.ends_with(".safetensors"))
    throw InvalidArgument(
        fmt::format("--out \"{}\": the name must end in .onnx (weights and network) or "
                    ".safetensors (weights)",
                    options.out));
  command.refuse(kOfOnnx, "a file of safetensors");
}

void write_weights(const ExportOptions& options, const training::SavedRun& run) {
  const auto names = options.names.empty() ? training::NameMap() : training::NameMap(options.names);
  const auto weights = training::named_weights(run, names);
  write_own_file(options.out,
                 [&](AtomicFile& file) { return write_safetensors(file, sources_of(weights)); });
}

void export_run(const ExportOptions& options, const Context& context) {
  const auto run = load_noted_run(options.run, options.previous);
  const bool arrays = training::is_on_arrays(run);
  if (arrays && options.names_pixels)
    throw InvalidArgument(
        "the run is on arrays, which its network takes as they are; leave out --pixels");
  if (options.is_onnx()) {
    write_own_file(options.out, training::encode_run(run, options.file));
  } else {
    write_weights(options, run);
  }
  if (context.json) {
    print_document("export",
                   page::Json::array({{{"run", options.run},
                                       {"file", options.out},
                                       {"bytes", std::filesystem::file_size(options.out)},
                                       {"pixels", options.is_onnx() && !arrays
                                                      ? page::Json(name_of(options.file.pixels))
                                                      : page::Json()},
                                       {"step", run.losses.size()}}}));
    return;
  }
  print_text("the weights of step {} written to {}\n", run.losses.size(), options.out);
}

}  // namespace

void describe_export(Command& command, Context& context) {
  auto options = std::make_shared<ExportOptions>();
  command.add_option("run", options->run, "run folder").required();
  command
      .add_option("--out", options->out,
                  "FILE.onnx for weights and network, or FILE.safetensors for only the weights")
      .output_file()
      .required();
  command
      .add_option("--opset", options->file.opset,
                  "ONNX operator set (default: 17, or that of the imported file)")
      .check(whole_from(onnx::kFirstExportOpset, onnx::kLastExportOpset));
  command.add_option("--pixels", options->file.pixels,
                     "pixels that the model takes: uint8 (0 to 255), unit (0 to 1), or normalized "
                     "like those of the network");
  command.add_option("--names", options->names,
                     "JSON file that maps names of weights of the model to names in a safetensors "
                     "file");
  command.add_flag("--previous", options->previous, "use the checkpoint before the newest");
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, command, &context] {
    require_own_file(options->out);
    require_kind(*options, command);
    options->names_pixels = command.count("--pixels") > 0;
    export_run(*options, context);
  });
}

}  // namespace triptych::app
