// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/machine_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/mapped.h"
#include "core/io/input_file.h"
#include "core/io/strict_json.h"
#include "experiments/machines/json_field.h"
#include "experiments/machines/published_machines.h"

namespace triptych::machines {
namespace {

using Json = Field::Json;

constexpr int kSchema = 1;
constexpr std::int64_t kMaxFileBytes = 1 << 20;
/// How far a figure may be from the product of its factors: data sheets round.
constexpr double kRounding = 0.02;
constexpr const char* kFlops = "FLOP/s";
constexpr const char* kBytes = "B";
constexpr const char* kRate = "B/s";
constexpr const char* kSeconds = "s";
constexpr const char* kWatts = "W";

TimeKind kind_of(const Field& field) {
  const auto text = field.text();
  for (const auto kind :
       {TimeKind::Measured, TimeKind::Simulated, TimeKind::Modelled, TimeKind::Recorded}) {
    if (text == to_string(kind)) return kind;
  }
  field.refuse("must be measured, simulated, modelled or recorded");
}

/// `least`: the lower limit of the value. 0 alone is allowed for a latency.
Figure figure_of(const Field& field, const char* unit, bool may_be_zero = false) {
  field.object({"value", "unit", "kind", "source", "factors"});
  Figure figure;
  figure.value = field.at("value").number(0);
  if (figure.value == 0 && !may_be_zero) field.at("value").refuse("must be above 0");
  if (field.at("unit").text() != unit) field.at("unit").refuse(fmt::format("must be {}", unit));
  figure.kind = kind_of(field.at("kind"));
  figure.source = field.at("source").text();
  if (!field.has("factors")) return figure;
  double product = 1;
  field.at("factors").each([&](const Field& factor) {
    figure.factors.push_back(factor.number(0));
    product *= figure.factors.back();
  });
  if (std::fabs(product - figure.value) > kRounding * figure.value) {
    field.at("factors").refuse(fmt::format("must have the product {:.6g}, within 2 %; it is {:.6g}",
                                           figure.value, product));
  }
  return figure;
}

std::optional<Figure> optional_figure(const Field& field, const char* name, const char* unit) {
  if (!field.has(name)) return std::nullopt;
  return figure_of(field.at(name), unit);
}

MemoryLevel level_of(const Field& field) {
  field.object({"name", "capacity", "copy", "triad"});
  return {.name = field.at("name").text(),
          .capacity = optional_figure(field, "capacity", kBytes),
          .copy = optional_figure(field, "copy", kRate),
          .triad = optional_figure(field, "triad", kRate)};
}

Link link_of(const Field& field) {
  field.object({"alpha", "beta", "add"});
  return {.alpha = figure_of(field.at("alpha"), kSeconds, true),
          .beta = figure_of(field.at("beta"), kRate),
          .add = optional_figure(field, "add", kRate)};
}

EfficiencyTable efficiencies_of(const Field& field) {
  field.object({"ranks", "busy", "kind", "source", "classes"});
  EfficiencyTable table;
  table.ranks = static_cast<int>(std::min(field.at("ranks").number(1), 1e6));
  table.busy = static_cast<int>(std::min(field.at("busy").number(1), 1e6));
  table.kind = kind_of(field.at("kind"));
  table.source = field.at("source").text();
  field.at("classes").each_member([&](const std::string& name, const Field& points) {
    auto& list = table.classes[name];
    points.each([&](const Field& point) {
      point.object({"bound_s", "flops_per_byte", "fraction"});
      list.push_back({point.at("bound_s").number(1e-12), point.at("flops_per_byte").number(0),
                      point.at("fraction").number(1e-9)});
    });
    if (list.empty()) points.refuse("must have at least one point");
  });
  return table;
}

MachineFigures figures_of(const Field& field) {
  field.object({"schema", "name", "description", "kind", "peaks", "levels", "launch", "links",
                "power", "efficiencies"});
  MachineFigures figures;
  figures.name = field.at("name").text();
  figures.description = field.at("description").text();
  figures.kind = field.at("kind").text();
  if (figures.kind != "cpu" && figures.kind != "gpu" && figures.kind != "array") {
    field.at("kind").refuse("must be cpu, gpu or array");
  }
  field.at("peaks").each_member([&](const std::string& format, const Field& peak) {
    figures.peaks[format] = figure_of(peak, kFlops);
  });
  if (figures.peaks.empty()) field.at("peaks").refuse("must have at least one format");
  field.at("levels").each([&](const Field& level) { figures.levels.push_back(level_of(level)); });
  if (figures.memory_bytes_per_s() == 0) {
    field.at("levels").refuse("must end with the main memory and its copy or triad");
  }
  figures.launch = optional_figure(field, "launch", kSeconds);
  if (field.has("links")) {
    field.at("links").each_member([&](const std::string& name, const Field& link) {
      figures.links.emplace(name, link_of(link));
    });
  }
  figures.power = optional_figure(field, "power", kWatts);
  if (field.has("efficiencies")) {
    field.at("efficiencies").each([&](const Field& table) {
      figures.efficiencies.push_back(efficiencies_of(table));
    });
  }
  return figures;
}

Json json_of(const Figure& figure, const char* unit) {
  Json json = {{"value", figure.value},
               {"unit", unit},
               {"kind", to_string(figure.kind)},
               {"source", figure.source}};
  if (!figure.factors.empty()) json["factors"] = figure.factors;
  return json;
}

void put(Json& json, const char* name, const std::optional<Figure>& figure, const char* unit) {
  if (figure) json[name] = json_of(*figure, unit);
}

Json json_of(const EfficiencyTable& table) {
  Json classes = Json::object();
  for (const auto& [name, points] : table.classes) {
    for (const auto& point : points) {
      classes[name].push_back({{"bound_s", point.bound_s},
                               {"flops_per_byte", point.flops_per_byte},
                               {"fraction", point.fraction}});
    }
  }
  return {{"ranks", table.ranks},
          {"busy", table.busy},
          {"kind", to_string(table.kind)},
          {"source", table.source},
          {"classes", std::move(classes)}};
}

}  // namespace

double MachineFigures::memory_bytes_per_s() const {
  if (levels.empty()) return 0;
  const auto& memory = levels.back();
  return std::max(memory.copy ? memory.copy->value : 0, memory.triad ? memory.triad->value : 0);
}

MachineFigures parse_figures(std::string_view json, const std::string& origin) {
  try {
    const auto parsed = parse_strict<Json>(std::string(json));
    require_schema(parsed, kSchema, "make the file again by `triptych calibrate`");
    return figures_of(Field(parsed, origin, ""));
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("{}: {}", origin, error.what()));
  } catch (const IoError& error) {
    throw InvalidArgument(fmt::format("{}: {}", origin, error.what()));
  }
}

MachineFigures load_figures(const std::filesystem::path& file) {
  return parse_figures(read_file(file, kMaxFileBytes), fmt::format("\"{}\"", file.string()));
}

std::string to_json(const MachineFigures& figures) {
  Json json = {
      {"schema", kSchema},    {"name", figures.name},    {"description", figures.description},
      {"kind", figures.kind}, {"peaks", Json::object()}, {"levels", Json::array()}};
  for (const auto& [format, peak] : figures.peaks) json["peaks"][format] = json_of(peak, kFlops);
  for (const auto& level : figures.levels) {
    Json entry = {{"name", level.name}};
    put(entry, "capacity", level.capacity, kBytes);
    put(entry, "copy", level.copy, kRate);
    put(entry, "triad", level.triad, kRate);
    json["levels"].push_back(std::move(entry));
  }
  put(json, "launch", figures.launch, kSeconds);
  for (const auto& [name, link] : figures.links) {
    json["links"][name] = {{"alpha", json_of(link.alpha, kSeconds)},
                           {"beta", json_of(link.beta, kRate)}};
    put(json["links"][name], "add", link.add, kRate);
  }
  put(json, "power", figures.power, kWatts);
  for (const auto& table : figures.efficiencies) json["efficiencies"].push_back(json_of(table));
  return json.dump(2) + "\n";
}

MachineFigures find_figures(std::string_view name_or_path) {
  for (const auto& machine : published_files()) {
    if (machine.name == name_or_path) {
      return parse_figures(machine.json,
                           fmt::format("experiments/machines/devices/{}.json", machine.name));
    }
  }
  const std::filesystem::path path(name_or_path);
  if (path.has_parent_path() || path.extension() == ".json") return load_figures(path);
  throw InvalidArgument(
      fmt::format("no machine \"{}\" is published; choose from: {}, or give a file of `triptych "
                  "calibrate` (its path with a \"/\" or the ending .json)",
                  name_or_path, fmt::join(published_machines(), ", ")));
}

std::vector<std::string> published_machines() {
  return mapped<std::string>(published_files(), [](const auto& machine) { return machine.name; });
}

}  // namespace triptych::machines
