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

}  // namespace triptych::web
