// `triptych page`: a training run, a machine at work, or ranks that add up, as one HTML file.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>

#include "core/base/error.h"
#include "core/base/speech.h"
#include "core/io/own_files.h"
#include "experiments/app/commands.h"
#include "experiments/app/output_files.h"
#include "experiments/app/run_page.h"
#include "experiments/studies/collectives_report.h"
#include "experiments/training/run_folder.h"
#include "experiments/web/pages.h"

namespace triptych::app {
namespace {

struct PageOptions {
  std::string run, evaluation, out;
};

void write_page(const PageOptions& options) {
  const std::filesystem::path folder = options.run;
  auto report = load_document(folder / training::kReportFile, "train");
  if (!options.evaluation.empty()) report = with_evaluation(std::move(report), options.evaluation);
  const auto out =
      options.out.empty() ? folder / training::kPageFile : std::filesystem::path(options.out);
  require_writable(out);
  write_own_file(out, run_page(report));
  print_text("page: {}\n", out.string());
}

/// A page that is of no run.
Command add_web_page(Command& page, const char* name, const char* summary, std::string (*html)()) {
  auto command = page.add_subcommand(name, summary);
  auto out = std::make_shared<std::string>(fmt::format("{}.html", name));
  command.add_option("--out", *out, "the page").output_file().capture_default_str();
  command.callback([out, html] {
    require_writable(*out);
    write_own_file(*out, html());
    print_text("page: {}\n", *out);
  });
  return command;
}

}  // namespace

void add_page_command(Command& app) {
  auto options = std::make_shared<PageOptions>();
  auto command = app.add_subcommand(
      "page", "Write a training run, a machine at work, or collectives, as one HTML page");
  command.add_option("run", options->run, "folder of a training run");
  command.add_option("--evaluation", options->evaluation,
                     "folder that `triptych evaluate --out` wrote: its scores and worst images");
  command.add_option("--out", options->out, "the page")
      .output_file()
      .default_text("report.html of the run's folder");
  auto array = add_web_page(command, "array",
                            "The systolic array, cycle by cycle: RTL and twin run in the page",
                            web::array_page);
  auto gpu = add_web_page(command, "gpu",
                          "The GPU, access by access: emulated kernels, recorded now, for the page",
                          web::gpu_page);
  auto collectives =
      add_web_page(command, "collectives",
                   "Ring, tree and server add up a training step's gradients, step by step",
                   [] { return web::collectives_page(studies::collectives_report()); });
  command.callback([options, array, gpu, collectives] {
    if (array.parsed() || gpu.parsed() || collectives.parsed()) return;
    if (options->run.empty()) {
      throw InvalidArgument("name the folder of a training run, or array, collectives, or gpu");
    }
    write_page(*options);
  });
}

}  // namespace triptych::app
