// The verdict and the panels of the machines.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "experiments/compare/page_parts.h"
#include "experiments/page/format.h"

namespace triptych::compare {
namespace {

std::string item(bool yes, std::string_view what) {
  return fmt::format("<li{}>{}{}</li>", yes ? "" : " class=\"no\"", what, yes ? "" : " differ");
}

std::string checks_html(const page::JsonView& verdict) {
  return "<ul class=\"checks\">" + item(verdict["losses"].flag(), "losses of every step") +
         item(verdict["weights"].flag(), "weights") + item(verdict["masks"].flag(), "masks") +
         "</ul>";
}

/// A number in running text.
std::string shown(const page::JsonView& number, int digits = 9) {
  auto cell = page::number_cell(number);
  if (cell.value && *cell.value != static_cast<double>(static_cast<long long>(*cell.value))) {
    cell.text = page::format_digits(*cell.value, digits);
  }
  return page::cell_html(cell);
}

std::string first_difference_html(const page::JsonView& first) {
  if (first.null()) {
    return "<p>The report does not name the first difference. Run with the same contract on all "
           "machines, and compare the losses below.</p>";
  }
  const auto names = first["machines"].texts();
  std::string html = fmt::format(
      "<p>{} first differ", names.empty() ? "The machines" : page::escape(page::join_words(names)));
  if (!first["step"].null()) html += " at step " + shown(first["step"]);
  if (!first["node"].null())
    html += fmt::format(", in node <code>{}</code>", page::escape(first["node"].text()));
  if (!first["element"].null()) html += ": element " + shown(first["element"]);
  if (first["output"].number() > 0) html += " of output " + shown(first["output"]);
  const auto values = first["values"];
  if (values.size() == 2) html += " is " + shown(values[0]) + " and " + shown(values[1]);
  if (!first["different_elements"].null()) {
    html += "; " + shown(first["different_elements"]);
    if (!first["of"].null()) html += " of " + shown(first["of"]);
    html += " elements differ there";
  }
  html += ".</p>";
  const auto why = first["why"].text();
  return why.empty() ? html : html + fmt::format("<p>Why: {}</p>", page::escape_prose(why));
}

void write_same(page::Page& page, const Compared& compared, const std::vector<std::string>& names) {
  const auto contract = compared.results["experiment"]["contract"].text();
  page.html("<div class=\"verdict same\"><strong>Identical to the bit</strong>\n");
  page.text(
      fmt::format("Trained from the same seed on the same images in the same order{}, {} end with "
                  "the same losses, "
                  "the same weights and the same masks: not close, but equal in every bit.",
                  contract.empty() ? "" : " under " + contract, page::join_words(names)));
  page.html(checks_html(compared.results["verdict"]) + "</div>\n");
}

void write_different(page::Page& page, const page::JsonView& verdict) {
  page.html("<div class=\"verdict different\"><strong>Not identical</strong>\n");
  page.html(first_difference_html(verdict["first_difference"]));
  page.html(checks_html(verdict) + "</div>\n");
}

std::string device_html(const page::JsonView& machine) {
  std::string text = machine["device"].text();
  const auto threads = machine["threads"];
  return fmt::format("<p class=\"device\">{}{}</p>\n", page::escape(text),
                     threads.null()
                         ? ""
                         : fmt::format(", {} thread{}", page::cell_html(page::number_cell(threads)),
                                       threads.number() == 1 ? "" : "s"));
}

std::string row_html(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", page::escape(name), value);
}

/// The one number of a machine: its time, or that it has none.
std::string headline_html(const ComparedMachine& machine) {
  if (machine.bits_only) {
    return "<p class=\"big\">bits only</p>\n<p class=\"small\">checked for its bits, not for its "
           "time: that of an emulation says nothing of a GPU</p>\n";
  }
  const auto epoch = machine.part["times"]["epoch"];
  if (epoch["value"].null()) return "<p class=\"small\">The report holds no time of it.</p>\n";
  return fmt::format("<p class=\"big\">{}</p>\n<p class=\"small\">per epoch</p>\n",
                     page::cell_html(page::figure_cell(epoch)));
}

std::string rows_html(const ComparedMachine& machine, const std::string& first) {
  const auto& part = machine.part;
  std::string rows;
  if (machine.timed() && machine.name != first && !part["speedup"]["value"].null()) {
    rows += row_html("speedup over " + first, page::cell_html(page::ratio_cell(part["speedup"])));
  }
  if (machine.timed() && !part["throughput"]["value"].null()) {
    rows += row_html("throughput", page::cell_html(page::figure_cell(part["throughput"])));
  }
  const auto epochs = part["epochs"];
  const auto dice = epochs[epochs.size() - 1]["dice"];
  if (!dice.null()) rows += row_html("Dice", page::cell_html(page::number_cell(dice, "%")));
  const auto hash = part["weights_sha256"].text();
  if (!hash.empty()) {
    rows += row_html("weights", fmt::format("<code title=\"SHA-256 {}\">{}</code>",
                                            page::escape(hash), page::escape(hash.substr(0, 10))));
  }
  return rows.empty() ? "" : fmt::format("<dl>\n{}</dl>\n", rows);
}

std::string panel_html(const ComparedMachine& machine, const std::string& first) {
  const auto& part = machine.part;
  std::string html =
      fmt::format("<div class=\"panel c{}{}\"><h3>{}</h3>\n", machine.colour % page::kChartColours,
                  machine.available ? "" : " off", page::escape(machine.name));
  if (machine.available) {
    return html + device_html(part) + headline_html(machine) + rows_html(machine, first) +
           "</div>\n";
  }
  html += "<p class=\"device\">no result here</p>\n";
  for (const char* key : {"reason", "remedy"}) {
    html += fmt::format("<p class=\"small\">{}</p>\n", page::escape_prose(part[key].text()));
  }
  return html + "</div>\n";
}

page::Cell last_loss(const page::JsonView& machine) {
  const auto losses = machine["losses"];
  auto cell = page::number_cell(losses[losses.size() - 1]);
  if (cell.value) cell.text = page::format_digits(*cell.value, 7);
  return cell;
}

page::Table summary_table(const Compared& compared) {
  page::Table table{.id = "machines-table",
                    .caption = "The machines, their contracts, last losses and fingerprints",
                    .columns = {"machine", "backend", "contract", "last loss", "weights (SHA-256)",
                                "masks (SHA-256)"}};
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    const auto& part = machine.part;
    auto backend = part["backend"].text();
    if (!part["simulate"].text().empty()) backend += ", " + part["simulate"].text();
    table.rows.push_back({page::text_cell(machine.name), page::text_cell(backend),
                          page::text_cell(part["contract"].text()), last_loss(part),
                          page::code_cell(part["weights_sha256"].text().substr(0, 12)),
                          page::code_cell(part["masks_sha256"].text().substr(0, 12))});
  }
  return table;
}

page::Table scores_table(const Compared& compared) {
  const auto fields = page::fields_of<segmentation::MapScores>();
  const auto boundary = page::fields_of<segmentation::BoundaryMeasures>();
  auto table = page::table_of(
      "scores-table", "Scores of the validation images after the last epoch", {"machine"}, fields);
  page::add_columns(table, boundary);
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    const auto& part = machine.part;
    const auto epochs = part["epochs"];
    auto row = page::cells_of({page::text_cell(machine.name)}, epochs[epochs.size() - 1], fields);
    table.rows.push_back(page::cells_of(std::move(row), part, boundary));
  }
  return table;
}

}  // namespace

void write_verdict(page::Page& page, const Compared& compared) {
  page.section("verdict", "Verdict");
  const auto verdict = compared.results["verdict"];
  const auto names = verdict["machines"].texts();
  if (verdict.null() || names.size() < 2) {
    page.html("<div class=\"verdict\"><strong>Nothing to compare</strong>\n");
    page.text(names.empty()
                  ? "No machine of this comparison ran."
                  : fmt::format("Only {} ran. A comparison of bits needs two machines.", names[0]));
    page.html("</div>\n");
  } else if (verdict["identical"].flag()) {
    write_same(page, compared, names);
  } else {
    write_different(page, verdict);
  }
  const auto notes = compared.results["notes"].texts();
  if (notes.empty()) return;
  page.html("<ul class=\"notes\">\n");
  for (const auto& note : notes) page.html(fmt::format("<li>{}</li>\n", page::escape_prose(note)));
  page.html("</ul>\n");
}

void write_machines(page::Page& page, const Compared& compared) {
  page.section("machines", "Machines");
  if (compared.machines.empty()) {
    page.missing("The report names no machine.");
    return;
  }
  page.html(
      fmt::format("<div class=\"panels{}\">\n", compared.machines.size() == 4 ? " four" : ""));
  for (const auto& machine : compared.machines) {
    page.html(panel_html(machine, first_timed(compared)));
  }
  page.html("</div>\n");
  page.html("<p class=\"under\">");
  for (const char* kind : {"measured", "simulated", "modelled", "recorded"}) {
    page.html(fmt::format("<span class=\"key\">{}{}</span>", page::kind_badge(kind), kind));
  }
  page.html("</p>\n");
  page.text(
      "Each number carries its kind. Measured: this run, on this machine. Simulated: cycles of the "
      "hardware's own description at a stated clock. Modelled: a formula with its inputs. "
      "Recorded: an "
      "earlier measured run. A speedup carries two, that of the time it divides and that of the "
      "time it "
      "divides by.");
  page.table(summary_table(compared));
  page.table(scores_table(compared));
}

}  // namespace triptych::compare
