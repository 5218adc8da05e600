// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/pages.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "experiments/page/chart.h"
#include "experiments/page/content_policy.h"

namespace triptych::web {
namespace {

struct EmbeddedPage {
  std::string_view name, html;
};

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

/// With its policy and colours.
std::string find_page(std::string_view name) {
  const auto page = std::ranges::find(pages(), name, &EmbeddedPage::name);
  TRIPTYCH_ASSERT(page != pages().end());
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

std::string array_page(const page::Json& program) { return page_of_record("array.html", program); }

std::string gpu_page(const page::Json& record) { return page_of_record("gpu.html", record); }

std::string kernel_page(const page::Json& record) { return page_of_record("kernel.html", record); }

std::string collectives_page(const page::Json& report) {
  return page_of_record("collectives.html", report);
}

}  // namespace triptych::web
