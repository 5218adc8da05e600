// Sections about learning: losses, quality, masks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "experiments/compare/page_parts.h"
#include "experiments/page/format.h"
#include "experiments/page/record.h"
#include "experiments/training/data/metrics.h"

namespace triptych::compare {
namespace {

/// Machines with equal values, drawn as one curve: otherwise the last would hide the others.
struct Agreeing {
  std::vector<const ComparedMachine*> machines;

  std::string name(std::size_t groups) const {
    if (groups == 1 && machines.size() > 1) return "all machines, the same bits";
    std::vector<std::string> names;
    for (const auto* machine : machines) names.push_back(machine->name);
    return page::join_words(names) + (machines.size() > 1 ? ", the same bits" : "");
  }
};

/// `same` says whether two machines' parts agree.
template <typename Same>
std::vector<Agreeing> agreeing(const Compared& compared, std::string_view key, const Same& same) {
  std::vector<Agreeing> groups;
  for (const auto& machine : compared.machines) {
    if (!machine.available || machine.part[key].size() == 0) continue;
    const auto found = std::ranges::find_if(groups, [&](const Agreeing& group) {
      return same(group.machines.front()->part[key], machine.part[key]);
    });
    if (found == groups.end()) {
      groups.push_back({{&machine}});
    } else {
      found->machines.push_back(&machine);
    }
  }
  return groups;
}

page::ChartAxis loss_axis(const Compared& compared) {
  if (compared.results["experiment"]["loss"].text() == "dice")
    return {.label = "Dice loss", .unit = "1"};
  return {.label = "cross-entropy per pixel", .unit = "nat"};
}

page::Chart loss_chart(const Compared& compared) {
  page::Chart chart{
      .id = "loss", .title = "Loss of every training step", .form = page::ChartForm::Lines};
  chart.x = {.label = "step", .unit = "count", .whole = true};
  chart.y = loss_axis(compared);
  const auto groups = agreeing(
      compared, "losses",
      [](const page::JsonView& a, const page::JsonView& b) { return a.json() == b.json(); });
  for (const auto& group : groups) {
    auto& series = series_of(chart, group.name(groups.size()), "", group.machines.front()->colour);
    double step = 0;
    for (const auto& loss : group.machines.front()->part["losses"].items()) {
      series.points.push_back({.x = ++step, .y = loss.number(), .y_origin = {loss.path()}});
    }
  }
  return chart;
}

page::Table loss_table(const Compared& compared) {
  const auto axis = loss_axis(compared);
  page::Table table{
      .id = "losses", .caption = "Loss of every training step: " + axis.label, .columns = {"step"}};
  std::size_t steps = 0;
  std::vector<page::JsonView> columns;
  for (const auto& machine : compared.machines) {
    if (!machine.available || machine.part["losses"].size() == 0) continue;
    columns.push_back(machine.part["losses"]);
    table.columns.push_back(machine.name);
    steps = std::max(steps, columns.back().size());
  }
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<page::Cell> row = {page::text_cell(std::to_string(step + 1))};
    for (const auto& losses : columns) {
      auto cell = page::number_cell(losses[step], axis.unit);
      if (cell.value) cell.text = page::format_digits(*cell.value, 9);
      row.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

page::Chart quality_chart(const Compared& compared) {
  page::Chart chart{.id = "quality",
                    .title = "Quality on images that were not trained on",
                    .form = page::ChartForm::Lines};
  chart.x = {.label = "epoch", .unit = "count", .whole = true};
  chart.y = {.label = "share", .unit = "%"};
  const auto fields = page::fields_of<segmentation::MapScores>();
  const auto same = [&](const page::JsonView& a, const page::JsonView& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (const auto& field : fields) {
        if (a[i][field.key].json() != b[i][field.key].json()) return false;
      }
    }
    return true;
  };
  const auto groups = agreeing(compared, "epochs", same);
  std::size_t colour = 0;
  for (const auto& group : groups) {
    for (const auto& [key, quality, unit] : fields) {
      const auto name =
          groups.size() == 1 ? quality : fmt::format("{}: {}", quality, group.name(2));
      auto& series = series_of(chart, name, "", colour++);
      for (const auto& epoch : group.machines.front()->part["epochs"].items()) {
        if (epoch[key].null()) continue;
        series.points.push_back({.x = epoch["epoch"].number(),
                                 .y = epoch[key].number(),
                                 .x_origin = {epoch["epoch"].path()},
                                 .y_origin = {epoch[key].path()}});
      }
    }
  }
  return chart;
}

page::Table epoch_table(const Compared& compared) {
  const auto fields = page::fields_of<segmentation::MapScores>();
  auto table =
      page::table_of("epochs", "Every epoch of every machine", {"machine", "epoch"}, fields);
  table.columns.insert(table.columns.end(), {"training", "evaluation"});
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    for (const auto& epoch : machine.part["epochs"].items()) {
      auto row = page::cells_of({page::text_cell(machine.name), page::number_cell(epoch["epoch"])},
                                epoch, fields);
      for (const auto* time : {"train_time", "evaluate_time"})
        row.push_back(machine.timed() ? page::figure_cell(epoch[time])
                                      : page::text_cell("bits only"));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// The last epoch's scores of each class but the background.
page::Table class_table(const Compared& compared) {
  const auto fields = page::fields_of<segmentation::ClassScores>();
  auto table =
      page::table_of("classes", "Each class after the last epoch", {"machine", "class"}, fields);
  for (const auto& machine : compared.machines) {
    const auto epochs = machine.part["epochs"];
    if (!machine.available || epochs.size() == 0) continue;
    const auto names = compared.results["experiment"]["class_names"].texts();
    std::size_t label = 0;
    for (const auto& one : epochs[epochs.size() - 1]["classes"].items()) {
      const auto name = ++label < names.size() ? " " + names[label] : "";
      table.rows.push_back(page::cells_of(
          {page::text_cell(machine.name), page::text_cell(std::to_string(label) + name)}, one,
          fields));
    }
  }
  return table;
}

std::string picture(const page::JsonView& mask, std::string_view key, const std::string& alt) {
  const auto data = mask[key].text();
  if (data.empty()) return "<td class=\"none\">–";
  return fmt::format(
      "<td><img alt=\"{}\" width=\"{}\" height=\"{}\" src=\"data:image/png;base64,{}\">",
      page::escape(alt), page::escape(mask["width"].text()), page::escape(mask["height"].text()),
      page::escape(data));
}

std::string prediction(const ComparedMachine& machine, std::size_t row, const std::string& image) {
  const auto mask = machine.part["masks"][row];
  auto html = picture(mask, "prediction_png", fmt::format("mask of {} by {}", image, machine.name));
  const auto different = mask["different_pixels"];
  if (!different.null()) {
    html += fmt::format("<span class=\"small\">{} pixel{} differ{}</span>",
                        page::cell_html(page::number_cell(different)),
                        different.number() == 1 ? "" : "s", different.number() == 1 ? "s" : "");
  }
  return html + "</td>";
}

}  // namespace

void write_learning(page::Page& page, const Compared& compared) {
  page.section("learning", "Learning");
  const auto losses = loss_chart(compared);
  if (!page::has_points(losses)) {
    page.missing("The report holds no losses.");
    return;
  }
  page.text("Machines that agree in every bit share one curve. The numbers below list each.");
  page.chart(losses, loss_table(compared));
  const auto quality = quality_chart(compared);
  if (page::has_points(quality)) {
    page.chart(quality, epoch_table(compared));
    page.table(class_table(compared));
  } else {
    page.missing("No quality was evaluated: there were no validation images.");
  }
}

void write_masks(page::Page& page, const Compared& compared) {
  page.section("masks", "Masks side by side");
  std::vector<const ComparedMachine*> with;
  for (const auto& machine : compared.machines) {
    if (machine.available && machine.part["masks"].size() > 0) with.push_back(&machine);
  }
  if (with.empty()) {
    page.missing("No mask was predicted: there were no validation images.");
    return;
  }
  std::string html =
      "<div class=\"masks\" role=\"region\" tabindex=\"0\" aria-label=\"Masks of each "
      "machine\"><table>\n"
      "<thead><tr><th scope=\"col\">image</th><th scope=\"col\">truth</th>";
  for (const auto* machine : with)
    html += fmt::format("<th scope=\"col\">{}</th>", page::escape(machine->name));
  html += "</tr></thead>\n<tbody>\n";
  const auto masks = with.front()->part["masks"];
  for (std::size_t row = 0; row < masks.size(); ++row) {
    const auto name = masks[row]["image"].text();
    html += "<tr>" + picture(masks[row], "input_png", "image " + name) +
            fmt::format("<span class=\"small\">{}</span></td>", page::escape(name)) +
            picture(masks[row], "truth_png", "true mask of " + name) + "</td>";
    for (const auto* machine : with) html += prediction(*machine, row, name);
    html += "</tr>\n";
  }
  page.html(html + "</tbody></table></div>\n");
}

}  // namespace triptych::compare
