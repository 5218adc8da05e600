// `triptych page`: a training run as one HTML file, `page array`, and commands for other pages.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/console.h"
#include "core/base/error.h"
#include "core/base/mapped.h"
#include "core/base/nearest_name.h"
#include "core/io/output_ledger.h"
#include "experiments/app/array_program.h"
#include "experiments/app/commands.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/parts.h"
#include "experiments/app/run_page.h"
#include "experiments/measure/mmu_program.h"
#include "experiments/page/page.h"
#include "experiments/training/run_folder.h"
#include "experiments/web/pages.h"

namespace triptych::app {
namespace {

struct PageOptions {
  std::string run, evaluation, out;
};

/// No program of the page of the array is longer than this many bytes.
constexpr std::int64_t kMaxProgram = std::int64_t{1} << 20;

struct ArrayPageOptions {
  std::string program;
  std::vector<std::string> inputs;
};

std::string write_array_page(const ArrayPageOptions& options) {
  if (options.program.empty()) return web::array_page(nullptr);
  measure::ProgramRequest request;
  request.source = options.program;
  const auto read = [&](std::string_view text) {
    request.listing = mmu::read_listing(text);
    const auto files = files_of(request, true, measure::parse_array_files(options.inputs));
    return with_values(request, text, files);
  };
  const auto text = read_program(options.program, read, kMaxProgram);
  if (std::ssize(text) > kMaxProgram)
    throw InvalidArgument(fmt::format("{} and its arrays have {} bytes of text; the page takes {}",
                                      options.program, text.size(), kMaxProgram));
  return web::array_page(page::valid_text({{"text", text}}));
}

/// A mistyped name of a page command is not a run.
void require_folder(const std::string& run, const std::vector<Command>& pages) {
  if (std::filesystem::exists(run)) return;
  auto names = mapped<std::string>(pages, [](const auto& page) { return page.name(); });
  throw InvalidArgument(fmt::format("there is no folder \"{}\"{}", run, suggestion(run, names)));
}

std::filesystem::path write_page(const PageOptions& options) {
  const std::filesystem::path folder = options.run;
  auto report = load_document(folder / training::kReportFile, "train");
  if (!options.evaluation.empty()) report = with_evaluation(std::move(report), options.evaluation);
  auto out =
      options.out.empty() ? folder / training::kPageFile : std::filesystem::path(options.out);
  require_writable(out);
  write_own_file(out, run_page(report, run_pictures(folder, report)));
  return out;
}

}  // namespace

Command add_web_page(Command& page, Context& context, const CommandText& text,
                     std::function<std::string()> html) {
  auto command = page.add_subcommand(text.name, text.help);
  auto out = std::make_shared<std::string>(fmt::format("{}.html", text.name));
  command.add_option("--out", *out, "HTML page").output_file();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([out, html = std::move(html), name = text.name, &context] {
    require_writable(*out);
    write_own_file(*out, html());
    if (context.json)
      return print_document(fmt::format("page {}", name), Json::array({{{"file", *out}}}));
    print_text("page: {}\n", *out);
  });
  return command;
}

namespace {

Command add_array_page(Command& page, Context& context) {
  auto options = std::make_shared<ArrayPageOptions>();
  auto command =
      add_web_page(page, context, kArrayPage, [options] { return write_array_page(*options); });
  command.add_option("--program", options->program,
                     "program of the array that the page begins with");
  command
      .add_option("--dram", options->inputs,
                  "NPY file for the input of the program, or NAME=FILE for one of several")
      .only_with("--program");
  return command;
}

}  // namespace

void describe_page(Command& command, Context& context) {
  auto options = std::make_shared<PageOptions>();
  command.add_option("run", options->run, "run folder");
  command.add_option("--evaluation", options->evaluation,
                     "folder of triptych evaluate --out: adds its scores and worst images");
  command.add_option("--out", options->out, "HTML page")
      .output_file()
      .default_text("report.html of the run's folder");
  auto pages = add_web_pages(command, context);
  pages.push_back(add_array_page(command, context));
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, pages, &context] {
    if (std::ranges::any_of(pages, &Command::parsed)) return;
    if (options->run.empty()) {
      throw InvalidArgument("name the folder of a training run, or array, collectives, or gpu");
    }
    require_folder(options->run, pages);
    const auto page = write_page(*options).string();
    if (context.json) return print_document("page", Json::array({{{"file", page}}}));
    print_text("page: {}\n", page);
  });
}

}  // namespace triptych::app
