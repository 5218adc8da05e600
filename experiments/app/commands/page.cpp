// `triptych page`: a training run as one HTML file, and commands for other pages.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "core/base/error.h"
#include "core/base/speech.h"
#include "core/io/own_files.h"
#include "experiments/app/commands.h"
#include "experiments/app/output_files.h"
#include "experiments/app/parts.h"
#include "experiments/app/run_page.h"
#include "experiments/training/run_folder.h"

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
  write_own_file(out, run_page(report, run_pictures(folder, report)));
  print_text("page: {}\n", out.string());
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
  const auto pages = add_web_pages(command);
  command.callback([options, pages] {
    if (std::ranges::any_of(pages, &Command::parsed)) return;
    if (options->run.empty()) {
      throw InvalidArgument("name the folder of a training run, or array, collectives, or gpu");
    }
    write_page(*options);
  });
}

}  // namespace triptych::app
