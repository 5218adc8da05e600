// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/pages.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "experiments/page/chart.h"
#include "experiments/page/content_policy.h"
#include "experiments/web/gpu_record.h"

namespace triptych::web {
namespace {

struct EmbeddedPage {
  std::string_view name, html;
};

/// Without that of the array in a build without a compiler for WebAssembly.
const std::vector<EmbeddedPage>& pages() {
  static const std::vector<EmbeddedPage> pages = {
#include "pages.inc"
  };
  return pages;
}

constexpr std::string_view kPolicy = "<!--POLICY-->", kPalette = "/*PALETTE*/",
                           kRecord = "/*RECORD*/";

void put(std::string& html, std::string_view place, std::string_view text) {
  html.replace(html.find(place), place.size(), text);
}

/// The page's own script, before anything of others stands in the page.
std::string_view script_of(std::string_view html) {
  constexpr std::string_view begin = "<script>", end = "</script>";
  html.remove_prefix(html.rfind(begin) + begin.size());
  return html.substr(0, html.find(end));
}

/// With its policy and colours. Empty for a page that this build has not.
std::string find_page(std::string_view name) {
  const auto page = std::ranges::find(pages(), name, &EmbeddedPage::name);
  if (page == pages().end()) return "";
  std::string html(page->html);
  const bool computes = html.find("id=\"wasm\"") != html.npos;
  put(html, kPolicy,
      page::content_policy(script_of(page->html),
                           computes ? page::WebAssembly::Allowed : page::WebAssembly::Refused));
  put(html, kPalette, page::chart_css());
  return html;
}

std::string page_of_record(std::string_view name, const page::Json& recorded) {
  auto html = find_page(name);
  auto record = recorded.dump();
  // A source may hold what ends a script.
  for (auto at = record.find("</"); at != std::string::npos; at = record.find("</", at + 2))
    record.replace(at, 2, "<\\/");
  put(html, kRecord, record);
  return html;
}

}  // namespace

std::string array_page() {
  auto html = find_page("array.html");
  if (html.empty()) {
    throw UnsupportedError(
        "this program was built without WebAssembly, which the page runs: in its sources, run "
        "experiments/setup.sh with the option web, set TRIPTYCH_ENABLE_WEB to ON and build again");
  }
  return html;
}

std::string gpu_page() { return page_of_record("gpu.html", record_gpu()); }

std::string collectives_page(const page::Json& report) {
  return page_of_record("collectives.html", report);
}

}  // namespace triptych::web
