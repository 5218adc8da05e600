// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "experiments/page/content_policy.h"
#include "experiments/page/format.h"
#include "page_assets.h"

namespace triptych::page {
namespace {

constexpr double kWide = 820, kSmall = 400, kNarrow = 330;  ///< CSS pixels

/// The three panels.
constexpr std::string_view kMark =
    R"(<svg class="logo" viewBox="0 0 44 28" width="44" height="28" aria-hidden="true">)"
    R"(<path class="c0" fill="currentColor" d="M1 27V9l9-5v23z"/>)"
    R"(<path class="c1" fill="currentColor" d="M12 27V12a10 11 0 0 1 20 0v15z"/>)"
    R"(<path class="c2" fill="currentColor" d="M43 27V9l-9-5v23z"/></svg>)";

/// The chart without the points outside the domain of its axes. Counts those points.
std::pair<Chart, std::size_t> drawable(Chart chart) {
  std::size_t before = 0, after = 0;
  const bool bars = chart.form == ChartForm::Bars || chart.form == ChartForm::Stack;
  const auto bad = [](const ChartAxis& axis, double value) {
    return !std::isfinite(value) || (axis.scale == Scale::Log && !(value > 0));
  };
  const auto bad_pair = [&](const auto& pair) {
    return bad(chart.x, pair.first) || bad(chart.y, pair.second);
  };
  for (auto& series : chart.series) {
    before += series.points.size();
    std::erase_if(series.points, [&](const ChartPoint& point) {
      return bad(chart.y, point.y) || (!bars && bad(chart.x, point.x));
    });
    after += series.points.size();
    std::erase_if(series.line, bad_pair);
  }
  for (auto& bound : chart.bounds) std::erase_if(bound.line, bad_pair);
  return {std::move(chart), before - after};
}

/// The chart as a figure that is not closed yet. `width` in CSS pixels, on screens that are not
/// narrow.
std::string figure_html(const Chart& asked, double width) {
  const auto [chart, left_out] = drawable(asked);
  std::string html = fmt::format("<figure class=\"plot\" id=\"{}\">\n<figcaption>{}</figcaption>\n",
                                 escape(chart.id), escape(chart.title));
  if (!has_points(chart)) {
    html += "<p class=\"missing\">No value of this chart is known.</p>\n";
  } else {
    html += fmt::format("<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n",
                        inline_svg(chart, width), inline_svg(chart, kNarrow));
  }
  if (left_out > 0 && has_points(chart)) {
    html += fmt::format("<p class=\"under\">{} of its values have no place on these axes.</p>\n",
                        left_out);
  }
  return html;
}

std::string fold_html(std::string_view line, const Table& table) {
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n",
                     table.rows.size() <= 24 ? " class=\"short\"" : "", escape(line),
                     table_html(table));
}

/// Numbers and words of an object, one name each. Nested members have names like "model depth". A
/// member that repeats the name and text of an earlier one is left out.
void add_facts(std::vector<std::pair<std::string, Cell>>& facts, const std::string& name,
               const JsonView& part) {
  if (part.is_object()) {
    for (const auto& [key, value] : part.json().items()) {
      auto words = key;
      std::ranges::replace(words, '_', ' ');
      add_facts(facts, name.empty() ? words : fmt::format("{} {}", name, words), part[key]);
    }
    return;
  }
  if (part.null() || part.size() > 0) return;
  auto text = part.text();
  if (text.empty()) return;
  const bool number = part.json().is_number();
  Cell cell = number ? number_cell(part) : text_cell(text);
  cell.text = number ? fmt::format("{:.6g}", part.number()) : std::move(text);
  const auto same = [&](const auto& fact) {
    return fact.first == name && fact.second.text == cell.text;
  };
  if (std::ranges::none_of(facts, same)) facts.emplace_back(name, std::move(cell));
}

}  // namespace

Page::Page(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Page::section(std::string_view id, std::string_view title) {
  body_ += sections_.empty() ? "" : "</section>\n";
  body_ += fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n",
      escape(id), escape(title));
  sections_.emplace_back(id, title);
}

void Page::heading(std::string_view title) { body_ += fmt::format("<h3>{}</h3>\n", escape(title)); }

void Page::text(std::string_view words) {
  body_ += fmt::format("<p>{}</p>\n", escape_prose(words));
}

void Page::missing(std::string_view words) {
  body_ += fmt::format("<p class=\"missing\">{}</p>\n", escape_prose(words));
}

void Page::html(std::string_view elements) { body_ += elements; }

void Page::table(const Table& table) { body_ += table_html(table); }

void Page::folded(std::string_view line, const Table& table) { body_ += fold_html(line, table); }

void Page::chart(const Chart& chart, const Table& numbers) {
  body_ += figure_html(chart, kWide) + fold_html("Numbers", numbers) + "</figure>\n";
}

void Page::charts(std::span<const Chart> charts, const Table& numbers) {
  body_ += "<div class=\"row\">\n";
  for (const auto& chart : charts) body_ += figure_html(chart, kSmall) + "</figure>\n";
  body_ += "</div>\n" + fold_html("Numbers", numbers);
}

void Page::facts(const JsonView& object) {
  std::vector<std::pair<std::string, Cell>> facts;
  add_facts(facts, "", object);
  body_ += "<dl class=\"facts\">\n";
  for (const auto& [name, cell] : facts) {
    body_ += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), cell_html(cell));
  }
  body_ += "</dl>\n";
}

void Page::embed(const Json& report) {
  auto text = report.dump();
  // JSON has "<" only in strings. As \u003c it can neither end the element nor open a comment.
  for (auto at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  embedded_ = fmt::format("<script type=\"application/json\" id=\"report\">{}</script>\n", text);
}

std::string Page::contents() const {
  std::string html = "<nav aria-label=\"Contents\"><ol>\n";
  for (const auto& [id, title] : sections_) {
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", escape(id), escape(title));
  }
  return html + "</ol></nav>\n";
}

std::string Page::str() const {
  const auto script = fmt::format("\n{}", kPageScript);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{}"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n",
      content_policy(script), escape(title_), chart_css(), kPageCss);
  html += fmt::format(
      "<a class=\"skip\" href=\"#main\">To the content</a>\n<header>\n<div class=\"bar-top\">{}"
      "<span class=\"product\">Triptych</span><span class=\"tools\">"
      "<button type=\"button\" id=\"save\" hidden>report.json</button>"
      "<button type=\"button\" id=\"theme\" hidden>Theme</button></span></div>\n<h1>{}</h1>\n",
      kMark, escape(title_));
  if (!subtitle_.empty()) html += fmt::format("<p class=\"subtitle\">{}</p>\n", escape(subtitle_));
  html += "</header>\n<div class=\"layout\">\n" + contents() + "<main id=\"main\">\n" + body_;
  html += sections_.empty() ? "" : "</section>\n";
  html += "</main>\n</div>\n<div id=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div>\n";
  return html + embedded_ + fmt::format("<script>{}</script>\n</body>\n</html>\n", script);
}

std::string commands_html(std::span<const std::string> commands) {
  std::string html = "<pre class=\"commands\"><code>";
  for (const auto& command : commands) html += escape_prose(command) + "\n";
  return html + "</code></pre>\n";
}

Json valid_text(const Json& report) {
  return Json::parse(report.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace triptych::page
