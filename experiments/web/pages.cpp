// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/pages.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "experiments/page/chart.h"

namespace triptych::web {
namespace {

struct EmbeddedPage {
  std::string_view name, html;
};

/// None in a build without a compiler for WebAssembly.
const std::vector<EmbeddedPage>& pages() {
  static const std::vector<EmbeddedPage> pages = {
#include "pages.inc"
  };
  return pages;
}

constexpr std::string_view kPalette = "/*PALETTE*/";

constexpr EmbeddedPage kCollectives[] = {
#include "collectives.inc"
};

std::string_view part(std::string_view name) {
  const auto found = std::ranges::find(kCollectives, name, &EmbeddedPage::name);
  TRIPTYCH_ASSERT(found != std::end(kCollectives));
  return found->html;
}

void fill(std::string& html, std::string_view mark, std::string_view content) {
  const auto at = html.find(mark);
  TRIPTYCH_ASSERT(at != html.npos);
  html.replace(at, mark.size(), content);
}

}  // namespace

std::string array_page() {
  const auto page = std::ranges::find(pages(), std::string_view("array.html"), &EmbeddedPage::name);
  if (page == pages().end()) {
    throw UnsupportedError(
        "this program was built without WebAssembly, which the page runs: in its sources, run "
        "experiments/setup.sh with the option web, set TRIPTYCH_ENABLE_WEB to ON and build again");
  }
  std::string html(page->html);
  return html.replace(html.find(kPalette), kPalette.size(), page::chart_css());
}

std::string collectives_page(const page::Json& report) {
  std::string html(part("collectives/collectives.html"));
  fill(html, kPalette, page::chart_css());
  fill(html, "/*STYLE*/",
       std::string(part("base.css")).append(part("collectives/collectives.css")));
  fill(html, "/*REPORT*/", report.dump());  // numbers and names of ours: no tag ends in it
  fill(html, "/*SCRIPT*/",
       std::string(part("collectives/run.js")).append(part("collectives/page.js")));
  return html;
}

}  // namespace triptych::web
