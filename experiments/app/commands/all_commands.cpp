// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/commands.h"
#include "experiments/app/parts.h"

namespace triptych::app {
namespace {

struct CommandRow {
  const char* name;
  const char* help;
  void (*describe)(Command& command, Context& context);
};

constexpr CommandRow kCommands[] = {
    {"devices", "List the available backends and devices", describe_devices},
    {"doctor", "Check the installation and explain how to add missing parts", describe_doctor},
    {"train", "Train a model on images and masks, classes or arrays", describe_train},
    {"run", "Apply a trained model to images, or an ONNX file to arrays", describe_run},
    {"evaluate", "Score a trained model on images with masks", describe_evaluate},
    {"cross-validate", "Train once per part of the images, and validate on that part",
     describe_cross_validate},
    {"find-lr", "Try learning rates in one short training, and suggest one", describe_find_lr},
    {"bench", "Time a model, a matrix product, attention or a convolution", describe_bench},
    {"calibrate", "Measure the peak rates of this machine for a device file", describe_calibrate},
    {"compare", "Train the same model on several backends and write a page", describe_compare},
    {"import", "Show where each node of an ONNX file can run", describe_import},
    {"export", "Export a trained model as ONNX or safetensors", describe_export},
    {"launch", "Run a command as several processes", describe_launch},
    {"explain", "Show where each node of a model runs and why", describe_explain},
    {"quantize", "Convert the weights of a trained model to int8", describe_quantize},
    {"trace", "Record one run of a model, a product or a convolution cycle by cycle",
     describe_trace},
    {"check", "Check the results of kernels, and the memory accesses of GPU kernels",
     describe_check},
    {"kernel", "Compile and run your own CUDA kernels on the emulated GPU", describe_kernel},
    {"lab", "Start, predict and grade the labs", describe_lab},
    {"machine", "List, show and build systolic machines", describe_machine},
    {"mmu", "Assemble and run programs of the systolic array", describe_mmu},
    {"synthesize", "Generate membrane images with their masks", describe_synthesize},
    {"data", "Describe folders of images and masks", describe_data},
    {"reproduce", "Test every claim of the source documents, with a verdict for each",
     describe_reproduce},
    {"page", "Write an HTML page of a training run, the array, the GPU or collectives",
     describe_page},
    {"help", "Show the help of a command", describe_help},
    {"version", "Print the version and the commit", describe_version},
    {"completion", "Print a script for the completion of a shell", describe_completion},
};

}  // namespace

void add_commands(Command& app, Context& context) {
  for (const auto& row : kCommands)
    app.add_subcommand(row.name, row.help,
                       [&row, &context](Command& command) { row.describe(command, context); });
}

}  // namespace triptych::app
