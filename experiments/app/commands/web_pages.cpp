// `triptych page array`, `gpu` and `collectives`: pages that show no run.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <memory>

#include "core/base/console.h"
#include "core/io/output_ledger.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/parts.h"
#include "experiments/studies/collectives_report.h"
#include "experiments/web/pages.h"

namespace triptych::app {
namespace {

Command add_web_page(Command& page, Context& context, const CommandText& text,
                     std::string (*html)()) {
  auto command = page.add_subcommand(text.name, text.help);
  auto out = std::make_shared<std::string>(fmt::format("{}.html", text.name));
  command.add_option("--out", *out, "HTML page").output_file().capture_default_str();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([out, html, name = text.name, &context] {
    require_writable(*out);
    write_own_file(*out, html());
    if (context.json)
      return print_document(fmt::format("page {}", name), Json::array({{{"file", *out}}}));
    print_text("page: {}\n", *out);
  });
  return command;
}

}  // namespace

std::vector<Command> add_web_pages(Command& page, Context& context) {
  return {add_web_page(page, context, kArrayPage, web::array_page),
          add_web_page(page, context, kGpuPage, web::gpu_page),
          add_web_page(page, context, kCollectivesPage,
                       [] { return web::collectives_page(studies::collectives_report()); })};
}

}  // namespace triptych::app
