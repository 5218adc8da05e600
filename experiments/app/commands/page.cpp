// `triptych page`: a training run, the array at work, or ranks that add up, as one HTML file.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>

#include "core/base/error.h"
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
  fmt::print("page: {}\n", out.string());
}

void write_array_page(const std::string& out) {
  require_writable(out);
  write_own_file(out, web::array_page());
  fmt::print("page: {}\n", out);
}

void write_collectives_page(const std::string& out) {
  require_writable(out);
  write_own_file(out, web::collectives_page(studies::collectives_report()));
  fmt::print("page: {}\n", out);
}

}  // namespace

void add_page_command(Command& app) {
  auto options = std::make_shared<PageOptions>();
  auto command = app.add_subcommand(
      "page", "Write a training run, the array at work, or collectives, as one HTML page");
  command.add_option("run", options->run, "folder of a training run");
  command.add_option("--evaluation", options->evaluation,
                     "folder that `triptych evaluate --out` wrote: its scores and worst images");
  command.add_option("--out", options->out, "the page (default: report.html of the run's folder)")
      .output_file();
  auto array = command.add_subcommand(
      "array", "The systolic array, cycle by cycle: RTL and twin run in the page");
  auto array_out = std::make_shared<std::string>("array.html");
  array.add_option("--out", *array_out, "the page").output_file().capture_default_str();
  array.callback([array_out] { write_array_page(*array_out); });
  auto collectives = command.add_subcommand(
      "collectives", "Ring, tree and server add up a training step's gradients, step by step");
  auto collectives_out = std::make_shared<std::string>("collectives.html");
  collectives.add_option("--out", *collectives_out, "the page").output_file().capture_default_str();
  collectives.callback([collectives_out] { write_collectives_page(*collectives_out); });
  command.callback([options, array, collectives] {
    if (array.parsed() || collectives.parsed()) return;
    if (options->run.empty())
      throw InvalidArgument("name the folder of a training run, or array, or collectives");
    write_page(*options);
  });
}

}  // namespace triptych::app
