// Writes the page of a report: render_page REPORT.json PAGE.html, by the report's "command". With a
// file *.svg for a page, it writes the first chart of the first claim as a file of its own.
// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <fstream>
#include <iostream>
#include <string_view>

#include "experiments/compare/compare_page.h"
#include "experiments/page/chart_json.h"
#include "experiments/studies/reproduce_page.h"

namespace {

using triptych::page::Json;
using triptych::page::JsonView;

std::string render(const Json& report, std::string_view file) {
  if (file.ends_with(".svg")) {
    return triptych::page::to_svg(
        triptych::page::chart_from(JsonView(report)["results"]["claims"][0]["charts"][0]));
  }
  return report.at("command") == "reproduce" ? triptych::studies::reproduce_page(report)
                                             : triptych::compare::compare_page(report);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 3)
      throw std::invalid_argument("usage: render_page REPORT.json PAGE.html|CHART.svg");
    std::ifstream input(arguments[1]);
    const auto text = render(Json::parse(input), arguments[2]);
    std::ofstream(arguments[2]) << text;
  } catch (const std::exception& error) {
    std::cerr << "render_page: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
