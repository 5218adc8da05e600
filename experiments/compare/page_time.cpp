// The distribution of time: per machine, per layer, and by device.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/compare/machine_run.h"
#include "experiments/compare/page_parts.h"
#include "experiments/page/format.h"

namespace triptych::compare {
namespace {

constexpr std::array kTimes = {std::pair("epoch", "one epoch"),
                               std::pair("step", "one training step"),
                               std::pair("image", "one image, training"),
                               std::pair("inference_image", "one image, inference")};

page::Chart times_chart(const Compared& compared) {
  page::Chart chart{.id = "times", .title = "Time on each machine", .form = page::ChartForm::Bars};
  chart.x = {.label = "what", .unit = ""};
  chart.y = {.label = "time, logarithmic", .unit = "s", .scale = page::Scale::Log};
  for (const auto& machine : compared.machines) {
    if (!machine.timed()) continue;
    for (const auto& [key, name] : kTimes)
      add_figure(chart, machine, name, machine.part["times"][key]);
  }
  return chart;
}

/// With the spread of its samples, and their number as a note.
page::Cell time_cell(const page::JsonView& figure) {
  auto cell = page::figure_cell(figure);
  const auto samples = figure["samples"].size();
  if (samples > 0) {
    Timing timing;
    for (const auto& sample : figure["samples"].items()) timing.samples.push_back(sample.number());
    if (cell.value) cell.text = page::format_quantity(*cell.value, cell.unit) + timing.spread();
    if (!cell.note.empty()) cell.note += "; ";
    cell.note += fmt::format("median of {} sample{}", samples, samples == 1 ? "" : "s");
  }
  return cell;
}

page::Table times_table(const Compared& compared) {
  page::Table table{.id = "times-table",
                    .caption =
                        "Medians, with the least and the most of their samples. The kinds of a "
                        "speedup are those of the time divided and of the time "
                        "divided by",
                    .columns = {"machine"}};
  for (const auto& [key, name] : kTimes) table.columns.emplace_back(name);
  table.columns.emplace_back("throughput");
  table.columns.push_back(fmt::format("speedup over {}", first_timed(compared)));
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    std::vector<page::Cell> row = {page::text_cell(machine.name)};
    if (!machine.timed()) {
      row.push_back(page::text_cell("bits only"));
      table.rows.push_back(std::move(row));
      continue;
    }
    for (const auto& [key, name] : kTimes) row.push_back(time_cell(machine.part["times"][key]));
    row.push_back(page::figure_cell(machine.part["throughput"]));
    row.push_back(page::ratio_cell(machine.part["speedup"]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// They have the last colours, and machines the first.
constexpr std::array<std::string_view, 3> kPasses = {"forward", "backward", "optimizer"};

page::Chart layers_chart(const Compared& compared, const ComparedMachine& machine) {
  page::Chart chart{.id = "layers-" + page::identifier(machine.name),
                    .title = shared_name(compared, machine, "layers"),
                    .form = page::ChartForm::Stack};
  chart.x = {.label = "part of the network", .unit = ""};
  chart.y = {.label = "time of one step", .unit = "s"};
  // Every part of the network first appears with its forward nodes, in their order.
  for (std::size_t pass = 0; pass < kPasses.size(); ++pass) {
    for (const auto& layer : machine.part["layers"].items()) {
      if (layer["pass"].text() != kPasses.at(pass) || layer["time"]["value"].null()) continue;
      const auto label =
          layer["node"].text() + "\n" + layer["op"].text() + ", " + layer["kernel"].text();
      series_of(chart, std::string(kPasses.at(pass)), layer["time"]["kind"].text(),
                page::kChartColours - kPasses.size() + pass)
          .points.push_back(bar_of(layer["time"]["value"], layer["stage"].text(), label));
    }
  }
  return chart;
}

page::Table layers_table(const Compared& compared) {
  page::Table table{.id = "layers-table",
                    .caption = "Every node of one training step, in the order of the plan",
                    .columns = {"machine", "node", "pass", "operator", "kernel", "time", "FLOP",
                                "bytes", "FLOP/byte"}};
  for (const auto& machine : compared.machines) {
    if (!machine.timed()) continue;
    for (const auto& layer : machine.part["layers"].items()) {
      table.rows.push_back(
          {page::text_cell(machine.name), page::code_cell(layer["node"].text()),
           page::text_cell(layer["pass"].text()), page::text_cell(layer["op"].text()),
           page::code_cell(layer["kernel"].text()), page::figure_cell(layer["time"]),
           page::number_cell(layer["flops"], "FLOP"), page::number_cell(layer["bytes"], "byte"),
           page::number_cell(layer["intensity"])});
    }
  }
  return table;
}

page::Table devices_table(const Compared& compared) {
  page::Table table{.id = "placement-table",
                    .caption = "The nodes of one training step by device",
                    .columns = {"machine", "device", "nodes", "work", "time"}};
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    for (const auto& device : machine.part["placement"].items()) {
      table.rows.push_back(
          {page::text_cell(machine.name), page::text_cell(device["device"].text()),
           page::number_cell(device["nodes"], "count"), page::number_cell(device["flops"], "FLOP"),
           machine.timed() ? page::figure_cell(device["time"]) : page::text_cell("bits only")});
    }
  }
  return table;
}

page::Table why_table(const Compared& compared) {
  page::Table table{.id = "why",
                    .caption = "The device and the kernel of each node, and the reason",
                    .columns = {"machine", "node", "device", "kernel", "why"}};
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    for (const auto& layer : machine.part["layers"].items()) {
      table.rows.push_back({page::text_cell(machine.name), page::code_cell(layer["node"].text()),
                            page::text_cell(layer["device"].text()),
                            page::code_cell(layer["kernel"].text()),
                            page::text_cell(layer["why"].text())});
    }
  }
  return table;
}

std::string speedups_html(const Compared& compared) {
  std::string items;
  const auto first = first_timed(compared);
  for (const auto& machine : compared.machines) {
    const auto speedup = machine.part["speedup"];
    const auto kinds = speedup["kinds"];
    if (!machine.timed() || machine.name == first || kinds.size() != 2) continue;
    items += fmt::format("<li>Speedup of {} over {}: {}, a {} time divided by a {} one{}.</li>\n",
                         page::escape(machine.name), page::escape(first),
                         page::cell_html(page::ratio_cell(speedup)), page::escape(kinds[0].text()),
                         page::escape(kinds[1].text()),
                         machine.part["target_clock"].flag() ? " at a target clock" : "");
  }
  return items.empty() ? "" : fmt::format("<ul class=\"notes\">\n{}</ul>\n", items);
}

}  // namespace

void write_times(page::Page& page, const Compared& compared) {
  page.section("time", "Time");
  const auto chart = times_chart(compared);
  if (!page::has_points(chart)) {
    page.missing(
        "No machine of this comparison has a time: those that ran were checked for bits only.");
    return;
  }
  const auto table = times_table(compared);
  page.chart(chart, table);
  page.html(speedups_html(compared));
}

void write_layers(page::Page& page, const Compared& compared) {
  page.section("layers", "Time per layer");
  std::vector<page::Chart> charts;
  for (const auto& machine : compared.machines) {
    if (!machine.timed() || repeats(compared, machine, "layers")) continue;
    auto chart = layers_chart(compared, machine);
    if (page::has_points(chart)) charts.push_back(std::move(chart));
  }
  if (charts.empty()) {
    page.missing("No machine of this comparison has a time for each layer.");
    return;
  }
  page.text(
      "One training step, node by node. Each chart has its own axis: the question is where a "
      "machine "
      "spends its time. Point at a piece of a bar to see which node it is.");
  const auto note = compared.results["breakdown_note"].text();
  if (!note.empty()) page.text(note);
  page.charts(charts, layers_table(compared));
}

void write_placement(page::Page& page, const Compared& compared) {
  page.section("placement", "Placement of the nodes");
  const auto table = devices_table(compared);
  if (table.rows.empty()) {
    page.missing("The report holds no placement.");
    return;
  }
  page.text(
      "Placement is strict: a node that the machine cannot run is an error. Nodes on a second "
      "device, which the command must allow, are listed here.");
  page.table(table);
  page.folded("Every node with its kernel and the reason", why_table(compared));
}

}  // namespace triptych::compare
