// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/reproduce_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "experiments/page/chart_json.h"
#include "experiments/page/format.h"
#include "experiments/page/page.h"

namespace triptych::studies {
namespace {

/// Verdicts and the class of their stamps, in counting order.
constexpr std::array kVerdicts = {std::pair("holds here", "holds"),
                                  std::pair("holds under these conditions", "depends"),
                                  std::pair("out of date", "old"), std::pair("wrong", "wrong")};

std::string stamp_html(const std::string& verdict) {
  std::string css;
  for (const auto& [name, of_name] : kVerdicts) {
    if (verdict == name) css = of_name;
  }
  return fmt::format("<span class=\"stamp {}\">{}</span>", css,
                     page::escape(verdict.empty() ? "no verdict" : verdict));
}

std::string claim_id(const page::JsonView& claim, std::size_t number) {
  return fmt::format("claim-{}-{}", number + 1, page::identifier(claim["id"].text()));
}

/// The title that the claim has, else its id in words.
std::string short_title(const page::JsonView& claim, std::size_t number) {
  auto title = claim["title"].text();
  if (!title.empty()) return title;
  auto id = claim["id"].text();
  std::ranges::replace(id, '-', ' ');
  std::ranges::replace(id, '_', ' ');
  if (!id.empty()) id[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(id[0])));
  return id.empty() ? fmt::format("Claim {}", number + 1) : id;
}

/// How many claims have each verdict: as the summary has it, else counted.
std::string counts_html(const std::vector<page::JsonView>& claims, const page::JsonView& summary) {
  std::string html;
  for (const auto& known : kVerdicts) {
    const std::string name = known.first;
    const auto count = std::ranges::count_if(
        claims, [&](const page::JsonView& claim) { return claim["verdict"].text() == name; });
    if (count == 0) continue;
    const auto stated = page::number_cell(summary[name]);
    html += fmt::format("<li>{} {}</li>\n", stamp_html(name),
                        stated.value ? page::cell_html(stated) : std::to_string(count));
  }
  return html;
}

void write_overview(page::Page& page, const std::vector<page::JsonView>& claims,
                    const page::JsonView& summary) {
  page.section("overview", "Overview");
  if (claims.empty()) {
    page.missing("The report holds no claim.");
    return;
  }
  page.html("<ul class=\"counts\">\n" + counts_html(claims, summary) + "</ul>\n");
  if (summary.is_string()) page.text(summary.text());
  std::string rows;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    rows += fmt::format(
        "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td>{}</td><td>{}</td></tr>\n",
        page::escape(claim_id(claims[i], i)), page::escape(short_title(claims[i], i)),
        page::escape(claims[i]["source"].text()), stamp_html(claims[i]["verdict"].text()));
  }
  page.html(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Claims\"><table>\n"
      "<caption>All claims with their verdicts</caption>\n<thead><tr><th scope=\"col\">claim</th>"
      "<th scope=\"col\">source</th><th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n" +
      rows + "</tbody></table></div>\n");
}

void write_claim(page::Page& page, const page::JsonView& claim, std::size_t number) {
  const auto id = claim_id(claim, number);
  page.section(id, short_title(claim, number));
  page.html(fmt::format("<blockquote>{}</blockquote>\n<p class=\"source\">{}</p>\n<p>{}</p>\n",
                        page::escape(claim["claim"].text()), page::escape(claim["source"].text()),
                        stamp_html(claim["verdict"].text())));
  const auto why = claim["why"].text();
  if (why.empty()) {
    page.missing("The report gives no reason for this verdict.");
  } else {
    page.text(why);
  }
  const auto rule = claim["rule"].text();
  if (!rule.empty()) page.text("The rule: " + rule);
  for (const auto& json : claim["charts"].items()) {
    auto chart = page::chart_from(json);
    chart.id = id + "-" + page::identifier(chart.id);
    page.chart(chart, page::points_table(chart));
  }
  std::size_t count = 0;
  for (const auto& table : claim["tables"].items()) {
    page.table(page::table_from(table, fmt::format("{}-table-{}", id, ++count)));
  }
  const auto commands = claim["commands"].texts();
  if (!commands.empty()) page.html(page::commands_html(commands));
}

}  // namespace

std::string reproduce_page(const page::Json& report) {
  const page::Json valid = page::valid_text(report);
  const page::JsonView root(valid);
  const auto claims = root["results"]["claims"].items();
  const auto machine = root["environment"]["cpu"].text();
  page::Page page("Claims of the sources, measured again", machine.empty() ? "" : "On " + machine);
  write_overview(page, claims, root["results"]["summary"]);
  for (std::size_t i = 0; i < claims.size(); ++i) write_claim(page, claims[i], i);
  page.embed(valid);
  return page.str();
}

}  // namespace triptych::studies
