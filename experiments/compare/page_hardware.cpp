// How the machines were used: roofline, utilisation, reuse of operands, energy, recorded runs.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "experiments/compare/page_parts.h"
#include "experiments/page/format.h"

namespace triptych::compare {
namespace {

/// The layers with work and a time that ran on the machine itself: layers on another device have
/// another roof.
std::vector<page::JsonView> own_layers(const ComparedMachine& machine) {
  const auto backend = machine.part["backend"].text();
  std::vector<page::JsonView> layers;
  for (const auto& layer : machine.part["layers"].items()) {
    const bool own = layer["device"].text().starts_with(backend);
    const bool worked = layer["flops"].number() > 0 && layer["intensity"].number() > 0;
    if (own && worked && layer["time"]["value"].number() > 0) layers.push_back(layer);
  }
  return layers;
}

void add_layers(page::Chart& chart, const Compared& compared, const ComparedMachine& machine) {
  const auto name = shared_name(compared, machine, "layers");
  for (const auto& layer : own_layers(machine)) {
    const auto seconds = layer["time"]["value"];
    series_of(chart, name, layer["time"]["kind"].text(), machine.colour)
        .points.push_back({.x = layer["intensity"].number(),
                           .y = layer["flops"].number() / seconds.number(),
                           .label = layer["node"].text(),
                           .x_origin = {layer["intensity"].path()},
                           .y_origin = {layer["flops"].path(), seconds.path()}});
  }
}

/// min(peak, bandwidth × intensity) over [low, high].
page::ChartLine roof(double peak, double bandwidth, double low, double high) {
  page::ChartLine line;
  if (bandwidth > 0) {
    const double ridge = peak / bandwidth;
    if (low < ridge) line.emplace_back(low, bandwidth * low);
    line.emplace_back(std::max(low, ridge), peak);
    high = std::max(high, 2 * ridge);
  } else {
    line.emplace_back(low, peak);
  }
  line.emplace_back(high, peak);
  return line;
}

void add_roofs(page::Chart& chart, const Compared& compared, const ComparedMachine& machine,
               double low, double high) {
  const auto roofline = machine.part["roofline"];
  const double peak = roofline["peak"]["value"].number();
  if (!(peak > 0)) return;
  const auto quantity = page::format_quantity(peak, "FLOP/s");
  const auto label = fmt::format("{}: {}", machine.name, quantity);
  const auto of_peak = fmt::format("{}: {}", shared_name(compared, machine, "layers"), quantity);
  const auto add = [&](const page::JsonView& bandwidth, const std::string& level, bool thin) {
    const double rate = bandwidth["value"].number();
    if (thin && !(rate > 0)) return;
    auto line = roof(peak, rate, low, high);
    if (thin) line.pop_back();
    if (line.size() < 2) return;
    const auto name =
        fmt::format("{}\n{} {}", of_peak, level, page::format_quantity(rate, "byte/s"));
    chart.bounds.push_back({name, thin ? "" : label, std::move(line), machine.colour});
  };
  for (const auto& level : roofline["levels"].items()) {
    if (level["bandwidth"]["value"].json() == roofline["memory"]["value"].json()) continue;
    add(level["bandwidth"], level["name"].text(), true);
  }
  add(roofline["memory"], "memory", false);
}

page::Chart roofline_chart(const Compared& compared) {
  page::Chart chart{.id = "roofline-chart",
                    .title = "Roofline: one point per layer and machine",
                    .form = page::ChartForm::Scatter};
  chart.x = {.label = "arithmetic intensity", .unit = "FLOP/byte", .scale = page::Scale::Log};
  chart.y = {.label = "rate", .unit = "FLOP/s", .scale = page::Scale::Log};
  double low = std::numeric_limits<double>::max(), high = 0;
  for (const auto& machine : compared.machines) {
    if (machine.timed() && !repeats(compared, machine, "layers"))
      add_layers(chart, compared, machine);
  }
  for (const auto& series : chart.series) {
    for (const auto& point : series.points) {
      low = std::min(low, point.x);
      high = std::max(high, point.x);
    }
  }
  if (high == 0) return chart;
  for (const auto& machine : compared.machines) {
    if (machine.timed() && !repeats(compared, machine, "layers"))
      add_roofs(chart, compared, machine, low / 1.5, 2 * high);
  }
  return chart;
}

page::Table rates_table(const Compared& compared) {
  page::Table table{.id = "roofline-points",
                    .caption = "The points: work over bytes, and work over time",
                    .columns = {"machine", "node", "pass", "FLOP/byte", "rate"}};
  for (const auto& machine : compared.machines) {
    if (!machine.timed()) continue;
    for (const auto& layer : own_layers(machine)) {
      table.rows.push_back({page::text_cell(machine.name), page::code_cell(layer["node"].text()),
                            page::text_cell(layer["pass"].text()),
                            page::number_cell(layer["intensity"]),
                            page::quotient_cell(layer["flops"], layer["time"]["value"], "FLOP/s",
                                                layer["time"]["kind"].text())});
    }
  }
  return table;
}

page::Table ceilings_table(const Compared& compared) {
  page::Table table{.id = "ceilings",
                    .caption = "The ceilings, and where each comes from",
                    .columns = {"machine", "ceiling", "value", "source"}};
  for (const auto& machine : compared.machines) {
    if (!machine.timed() || machine.part["roofline"].null()) continue;
    const auto roofline = machine.part["roofline"];
    const auto add = [&](const std::string& name, const page::JsonView& figure) {
      if (figure.null()) return;
      const auto own = figure["source"].text();
      table.rows.push_back({page::text_cell(machine.name), page::text_cell(name),
                            page::figure_cell(figure),
                            page::text_cell(own.empty() ? roofline["source"].text() : own)});
    };
    add("peak rate", roofline["peak"]);
    add("memory", roofline["memory"]);
    for (const auto& level : roofline["levels"].items()) {
      if (level["bandwidth"]["value"].json() == roofline["memory"]["value"].json()) continue;
      add(level["name"].text(), level["bandwidth"]);
    }
  }
  return table;
}

constexpr std::array kUtilisations = {std::pair("mfu", "MFU"), std::pair("hfu", "HFU")};

page::Chart utilisation_chart(const Compared& compared) {
  page::Chart chart{.id = "utilisation-chart",
                    .title = "Share of the peak rate that is used",
                    .form = page::ChartForm::Bars};
  chart.x = {.label = "measure", .unit = ""};
  chart.y = {.label = "of the peak", .unit = "%"};
  for (const auto& [key, name] : kUtilisations) {
    for (const auto& machine : compared.machines) {
      if (machine.timed()) add_figure(chart, machine, name, machine.part["utilisation"][key]);
    }
  }
  return chart;
}

page::Table utilisation_table(const Compared& compared) {
  page::Table table{.id = "utilisation-table",
                    .caption = "Model and hardware FLOP utilisation of a training step",
                    .columns = {"machine", "measure", "utilisation", "work", "of peak"}};
  for (const auto& machine : compared.machines) {
    if (!machine.timed()) continue;
    for (const auto& [key, name] : kUtilisations) {
      const auto part = machine.part["utilisation"][key];
      if (part.null()) continue;
      auto share = page::number_cell(part["value"], "%");
      share.kind = part["kind"].text();
      table.rows.push_back({page::text_cell(machine.name), page::text_cell(name), std::move(share),
                            page::number_cell(part["flops"], "FLOP"),
                            page::figure_cell(part["peak"])});
    }
  }
  return table;
}

page::Chart reuse_chart(const Compared& compared) {
  page::Chart chart{.id = "reuse-chart",
                    .title = "Reads per multiply-add at each level of the memory",
                    .form = page::ChartForm::Bars};
  chart.x = {.label = "level", .unit = ""};
  chart.y = {
      .label = "reads per multiply-add, logarithmic", .unit = "1", .scale = page::Scale::Log};
  for (const auto& machine : compared.machines) {
    if (!machine.available || repeats(compared, machine, "reuse")) continue;
    auto shared = machine;
    shared.name = shared_name(compared, machine, "reuse");
    for (const auto& level : machine.part["reuse"].items()) {
      add_figure(chart, shared, machine.name + ": " + level["level"].text(),
                 level["reads_per_mac"]);
    }
  }
  return chart;
}

page::Table reuse_table(const Compared& compared) {
  page::Table table{.id = "reuse-table",
                    .caption = "Reads per multiply-add",
                    .columns = {"machine", "level", "reads per multiply-add", "known by"}};
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    for (const auto& level : machine.part["reuse"].items()) {
      table.rows.push_back({page::text_cell(machine.name), page::text_cell(level["level"].text()),
                            page::figure_cell(level["reads_per_mac"]),
                            page::text_cell(level["how"].text())});
    }
  }
  return table;
}

page::Chart energy_chart(const Compared& compared) {
  page::Chart chart{
      .id = "energy-chart", .title = "Energy of one image", .form = page::ChartForm::Bars};
  chart.x = {.label = "machine", .unit = ""};
  chart.y = {.label = "energy", .unit = "J"};
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    add_figure(chart, machine, machine.name, machine.part["energy"]["per_image"]);
  }
  return chart;
}

/// Parts of one machine's energy.
page::Chart energy_parts_chart(const Compared& compared, const ComparedMachine& machine) {
  page::Chart chart{.id = "energy-" + page::identifier(machine.name),
                    .title = shared_name(compared, machine, "energy"),
                    .form = page::ChartForm::Bars};
  chart.x = {.label = "part", .unit = ""};
  chart.y = {.label = "energy of one image", .unit = "J"};
  const auto energy = machine.part["energy"];
  const auto kind = energy["per_image"]["kind"].text();
  for (const auto& part : energy["parts"].items()) {
    if (part["joule"].null()) continue;
    series_of(chart, "by part", kind, machine.colour)
        .points.push_back(bar_of(part["joule"], part["part"].text()));
  }
  return chart;
}

page::Table energy_table(const Compared& compared) {
  page::Table table{.id = "energy-images",
                    .caption = "Energy of one image",
                    .columns = {"machine", "energy", "table"}};
  for (const auto& machine : compared.machines) {
    const auto energy = machine.part["energy"];
    if (!machine.available || energy.null()) continue;
    table.rows.push_back({page::text_cell(machine.name), page::figure_cell(energy["per_image"]),
                          page::text_cell(energy["table"].text())});
  }
  return table;
}

page::Table energy_parts_table(const Compared& compared) {
  page::Table table{.id = "energy-parts",
                    .caption = "Events of one image and the cost of each",
                    .columns = {"machine", "part", "events", "energy of one", "energy"}};
  for (const auto& machine : compared.machines) {
    if (!machine.available) continue;
    const auto energy = machine.part["energy"];
    const auto kind = energy["per_image"]["kind"].text();
    for (const auto& part : energy["parts"].items()) {
      auto one = page::number_cell(part["joule_per_event"], "J"),
           all = page::number_cell(part["joule"], "J");
      one.kind = all.kind = kind;
      table.rows.push_back({page::text_cell(machine.name), page::text_cell(part["part"].text()),
                            page::number_cell(part["events"], "event"), std::move(one),
                            std::move(all)});
    }
  }
  return table;
}

page::Table stated_energy_table(const Compared& compared) {
  page::Table table{.id = "energy-table",
                    .caption = "The stated table: the cost of one event",
                    .columns = {"event", "energy", "source"}};
  for (const auto& row : compared.results["energy_table"].items()) {
    auto joule = page::number_cell(row["joule"], "J");
    joule.kind = "modelled";
    table.rows.push_back({page::text_cell(row["event"].text()), std::move(joule),
                          page::text_cell(row["source"].text())});
  }
  return table;
}

}  // namespace

void write_roofline(page::Page& page, const Compared& compared) {
  page.section("roofline", "Roofline");
  const auto chart = roofline_chart(compared);
  if (!page::has_points(chart)) {
    page.missing("No layer has both a time and work: there is no point to draw.");
    return;
  }
  page.text(
      "Memory limits a layer left of the bend of its machine's roof, arithmetic one right of it. "
      "Thin lines are the bandwidths of nearer memories. Layers that ran on another device are "
      "not drawn, because that device has another roof.");
  page.chart(chart, rates_table(compared));
  const auto ceilings = ceilings_table(compared);
  if (ceilings.rows.empty()) {
    page.missing("No ceilings are known: no machine was calibrated.");
  } else {
    page.folded("Ceilings and their sources", ceilings);
  }
}

void write_utilisation(page::Page& page, const Compared& compared) {
  page.section("utilisation", "Utilisation");
  const auto chart = utilisation_chart(compared);
  if (!page::has_points(chart)) {
    page.missing("No utilisation: it needs a time and the peak of the machine.");
    return;
  }
  page.text(
      "Model FLOP utilisation (MFU) counts the work that the network needs. Hardware FLOP "
      "utilisation (HFU) also counts padding and recomputed values.");
  page.chart(chart, utilisation_table(compared));
}

void write_reuse(page::Page& page, const Compared& compared) {
  page.section("reuse", "Reuse of operands");
  const auto chart = reuse_chart(compared);
  if (!page::has_points(chart)) {
    page.missing("The reads of no machine are known.");
    return;
  }
  page.text(
      "Reads of an operand from each level per multiply-add. Fewer reads mean that an operand is "
      "used more often after it was fetched.");
  page.chart(chart, reuse_table(compared));
}

void write_energy(page::Page& page, const Compared& compared) {
  page.section("energy", "Energy");
  const auto chart = energy_chart(compared);
  const auto stated = stated_energy_table(compared);
  if (!page::has_points(chart)) {
    page.missing("No energy was modelled.");
  } else {
    page.text(
        "Modelled, not measured: the number of events on each machine, times the cost of one in "
        "the table below. Use it to compare the parts, not to predict the power of a machine.");
    page.chart(chart, energy_table(compared));
    std::vector<page::Chart> parts;
    for (const auto& machine : compared.machines) {
      if (!machine.available || repeats(compared, machine, "energy")) continue;
      auto of_machine = energy_parts_chart(compared, machine);
      if (page::has_points(of_machine)) parts.push_back(std::move(of_machine));
    }
    if (!parts.empty()) page.charts(parts, energy_parts_table(compared));
  }
  if (!stated.rows.empty()) page.folded("The stated table", stated);
}

void write_recorded(page::Page& page, const Compared& compared) {
  page.section("recorded", "Recorded on real GPUs");
  page::Table table{.id = "recorded-table",
                    .caption = "Earlier runs that the repository holds",
                    .columns = {"machine", "date", "commit", "measurement", "value", "file"}};
  for (const auto& run : compared.results["recorded"].items()) {
    for (const auto& result : run["results"].items()) {
      auto value = page::figure_cell(result["value"]);
      if (value.kind.empty()) value.kind = "recorded";
      table.rows.push_back({page::text_cell(run["machine"].text()),
                            page::text_cell(run["date"].text().substr(0, 10)),
                            page::code_cell(run["commit"].text().substr(0, 12)),
                            page::text_cell(result["name"].text()), std::move(value),
                            page::code_cell(run["file"].text())});
    }
  }
  if (table.rows.empty()) {
    page.missing("The repository holds no run on a real GPU yet.");
  } else {
    page.table(table);
  }
}

}  // namespace triptych::compare
