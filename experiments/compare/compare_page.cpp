// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/compare_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "experiments/compare/page_parts.h"
#include "experiments/page/format.h"

namespace triptych::compare {
namespace {

std::string counted(const page::JsonView& number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number.text(), number.number() == 1 ? one : many);
}

std::string subtitle(const Compared& compared) {
  const auto experiment = compared.results["experiment"];
  std::vector<std::string> words;
  const auto model = experiment["model_name"].text();
  if (!model.empty()) words.push_back(model);
  const auto images = experiment["images"];
  if (!images["train"].null()) {
    const bool drawn = experiment["data"].text() == "synthetic";
    words.push_back(counted(images["train"], "image", "images") +
                    (drawn ? ", drawn from a seed" : ""));
  }
  if (!experiment["epochs"].null())
    words.push_back(counted(experiment["epochs"], "epoch", "epochs"));
  if (!experiment["batch"].null()) words.push_back("batch " + experiment["batch"].text());
  if (!experiment["seed"].null()) words.push_back("seed " + experiment["seed"].text());
  const auto contract = experiment["contract"].text();
  if (!contract.empty()) words.push_back("contract " + contract);
  return fmt::format("{}", fmt::join(words, " · "));
}

void write_experiment(page::Page& page, const Compared& compared) {
  page.section("experiment", "The experiment");
  const auto experiment = compared.results["experiment"];
  const auto commands = experiment["commands"].texts();
  if (commands.empty()) {
    page.missing("The report does not name the command that made it.");
  } else {
    page.html(page::commands_html(commands));
  }
  page.facts(experiment);
  page.heading("Made with");
  page.facts(compared.root["environment"]);
}

/// All numbers of a list of objects. Names of kernels and devices may differ.
bool same_numbers(const page::JsonView& one, const page::JsonView& other) {
  if (one.size() == 0 || one.size() != other.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    for (const char* key : {"node", "level", "flops", "bytes", "time", "reads_per_mac"}) {
      if (one[i][key].json() != other[i][key].json()) return false;
    }
  }
  return true;
}

bool same_part(const ComparedMachine& one, const ComparedMachine& other, std::string_view key) {
  if (!one.available || !other.available || one.bits_only != other.bits_only) return false;
  const auto a = one.part[key], b = other.part[key];
  return a.is_object() ? a.json() == b.json() : same_numbers(a, b);
}

std::string title(const Compared& compared) {
  const auto count = std::ranges::count(compared.machines, true, &ComparedMachine::available);
  constexpr std::array words = {"no machine",     "one machine",   "two machines",
                                "three machines", "four machines", "five machines"};
  const auto architecture = compared.results["experiment"]["model_name"].text().starts_with("unet");
  const auto machines = count < std::ssize(words) ? words.at(static_cast<std::size_t>(count))
                                                  : std::string_view("many machines");
  return fmt::format("One {}, {}", architecture ? "U-Net" : "network", machines);
}

}  // namespace

std::string first_timed(const Compared& compared) {
  const auto found = std::ranges::find_if(compared.machines, &ComparedMachine::timed);
  return found == compared.machines.end() ? "the first" : found->name;
}

bool repeats(const Compared& compared, const ComparedMachine& machine, std::string_view key) {
  return std::any_of(compared.machines.begin(),
                     compared.machines.begin() + static_cast<std::ptrdiff_t>(machine.colour),
                     [&](const auto& earlier) { return same_part(earlier, machine, key); });
}

std::string shared_name(const Compared& compared, const ComparedMachine& machine,
                        std::string_view key) {
  std::vector<std::string> names;
  for (const auto& other : compared.machines) {
    const bool itself = other.colour == machine.colour;
    if (itself || same_part(machine, other, key)) names.push_back(other.name);
  }
  return page::join_words(names);
}

Compared::Compared(const page::Json& report) : root(report), results(root["results"]) {
  for (const auto& part : results["machines"].items()) {
    const auto number = machines.size();
    const auto name = part["name"].text();
    machines.push_back({.part = part,
                        .name = name.empty() ? fmt::format("machine {}", number + 1) : name,
                        .colour = number,
                        .available = part["available"].null() || part["available"].flag(),
                        .bits_only = part["checks_bits_only"].flag()});
  }
}

page::ChartSeries& series_of(page::Chart& chart, const std::string& name, const std::string& kind,
                             std::size_t colour) {
  const auto found = std::ranges::find_if(chart.series, [&](const page::ChartSeries& series) {
    return series.name == name && series.kind == kind;
  });
  if (found != chart.series.end()) return *found;
  return chart.series.emplace_back(page::ChartSeries{.name = name, .kind = kind, .colour = colour});
}

page::ChartPoint bar_of(const page::JsonView& value, std::string category, std::string label) {
  return {.y = value.number(),
          .category = std::move(category),
          .label = std::move(label),
          .y_origin = {value.path()}};
}

void add_figure(page::Chart& chart, const ComparedMachine& machine, std::string_view category,
                const page::JsonView& figure) {
  if (figure["value"].null()) return;
  series_of(chart, machine.name, figure["kind"].text(), machine.colour)
      .points.push_back(bar_of(figure["value"], std::string(category)));
}

std::string compare_page(const page::Json& report) {
  const page::Json valid = page::valid_text(report);
  const Compared compared(valid);
  page::Page page(title(compared), subtitle(compared));
  write_verdict(page, compared);
  write_machines(page, compared);
  write_learning(page, compared);
  write_masks(page, compared);
  write_times(page, compared);
  write_layers(page, compared);
  write_placement(page, compared);
  write_roofline(page, compared);
  write_utilisation(page, compared);
  write_reuse(page, compared);
  write_energy(page, compared);
  write_recorded(page, compared);
  write_experiment(page, compared);
  page.embed(valid);
  return page.str();
}

}  // namespace triptych::compare
