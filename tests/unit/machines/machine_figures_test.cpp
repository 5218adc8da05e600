// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/machine_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace triptych::machines {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

/// Calls visit(figure, where) for everything that a machine states.
void each_figure(const MachineFigures& machine,
                 const std::function<void(const Figure&, const std::string&)>& visit) {
  const auto maybe = [&](const std::optional<Figure>& figure, const std::string& where) {
    if (figure) visit(*figure, machine.name + ": " + where);
  };
  for (const auto& [format, peak] : machine.peaks) maybe(peak, format);
  for (const auto& level : machine.levels) {
    maybe(level.capacity, level.name);
    maybe(level.copy, level.name);
    maybe(level.triad, level.name);
  }
  maybe(machine.launch, "launch");
  for (const auto& [name, link] : machine.links) {
    maybe(link.alpha, name);
    maybe(link.beta, name);
  }
  maybe(machine.power, "power");
}

TEST(PublishedMachines, are_those_of_the_folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TRIPTYCH_DEVICES_DIR)) {
    files.push_back(entry.path().stem().string());
  }
  std::ranges::sort(files);
  EXPECT_EQ(published_machines(), files);
  EXPECT_THAT(published_machines(), ElementsAre("a100", "h100", "h200", "i9-9900k", "rtx2070super",
                                                "tpu-v1", "tpu-v2", "tpu-v4", "tpu-v5e"));
}

TEST(PublishedMachines, state_the_source_of_every_figure_and_measured_none) {
  for (const auto& name : published_machines()) {
    const auto machine = find_figures(name);
    EXPECT_EQ(machine.name, name);
    int figures = 0;
    each_figure(machine, [&](const Figure& figure, const std::string& where) {
      ++figures;
      EXPECT_FALSE(figure.source.empty()) << where;
      EXPECT_TRUE(figure.kind == TimeKind::Modelled || figure.kind == TimeKind::Recorded) << where;
    });
    EXPECT_GE(figures, 3) << name;
  }
}

TEST(PublishedMachines, have_peaks_that_are_units_times_lanes_times_clock) {
  // Every peak of machines with a published clock. The loader checks the product.
  for (const char* name :
       {"i9-9900k", "rtx2070super", "a100", "h100", "h200", "tpu-v1", "tpu-v2", "tpu-v4"}) {
    for (const auto& [format, peak] : find_figures(name).peaks) {
      EXPECT_GE(peak.factors.size(), 4U) << name << " " << format;
    }
  }
  EXPECT_NEAR(find_figures("rtx2070super").peaks.at("f32").value, 9.06e12, 0.01e12);
  EXPECT_NEAR(find_figures("h200").peaks.at("bf16").value, 989e12, 1e12);
}

TEST(PublishedMachines, are_ordered_as_machines_are) {
  for (const auto& name : published_machines()) {
    const auto machine = find_figures(name);
    const auto& peaks = machine.peaks;
    double before = 0;
    for (const char* format : {"f32", "tf32", "bf16", "int8"}) {
      if (!peaks.contains(format)) continue;
      EXPECT_GE(peaks.at(format).value, before) << name << ": fewer bits are no slower";
      before = peaks.at(format).value;
    }
    double faster = 1e30;
    for (const auto& level : machine.levels) {
      const auto& figure = level.copy ? level.copy : level.triad;
      if (!figure) continue;
      EXPECT_LT(figure->value, faster) << name << ": " << level.name << " lies further away";
      faster = figure->value;
    }
    // The ridge of every one of them lies at 1 to 3000 FLOP/byte.
    EXPECT_GT(before / machine.memory_bytes_per_s(), 1) << name;
    EXPECT_LT(before / machine.memory_bytes_per_s(), 3000) << name;
  }
}

TEST(PublishedMachines, give_the_ratios_of_on_chip_to_off_chip_that_papers_quote) {
  const auto ratio = [](const char* name) {
    const auto machine = find_figures(name);
    return machine.levels.front().copy->value / machine.memory_bytes_per_s();
  };
  EXPECT_NEAR(ratio("a100"), 9.6, 0.1);  // the "19 TB/s, ten times" of surveys
  EXPECT_NEAR(ratio("h200"), 6.4, 0.1);
}

TEST(MachineFigures, read_back_what_was_written) {
  auto machine = find_figures("h200");
  machine.launch = Figure{3e-6, TimeKind::Measured, "triptych calibrate"};
  machine.links.at("rank").add = Figure{5e9, TimeKind::Measured, "triptych calibrate"};
  EfficiencyTable table = {.ranks = 2, .source = "triptych calibrate", .classes = {}};
  table.classes["Conv/gemm"] = {{1e-6, 1, 0.5}, {1e-3, 20, 0.75}};
  machine.efficiencies = {table};
  const auto text = to_json(machine);
  const auto again = parse_figures(text, "text");
  EXPECT_EQ(to_json(again), text);
  EXPECT_EQ(again.efficiencies.at(0).classes.at("Conv/gemm").at(1).fraction, 0.75);
  EXPECT_EQ(again.launch->kind, TimeKind::Measured);
}

TEST(MachineFigures, are_found_by_name_or_path) {
  EXPECT_THROW(find_figures("/nowhere/a.json"), IoError);
  try {
    find_figures("h300");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"h300\""));
    EXPECT_THAT(error.what(), HasSubstr("rtx2070super, tpu-v1"));
  }
  const auto path = std::filesystem::path(testing::TempDir()) / "figures.json";
  std::ofstream(path) << to_json(find_figures("a100"));
  EXPECT_EQ(find_figures(path.string()).name, "a100");
  std::filesystem::remove(path);
}

/// A change to a good file, and the required message about it.
struct Damage {
  const char* pointer;
  Json value;  ///< discarded: the member is removed
  const char* message;
};

TEST(MachineFigures, refuse_a_damaged_file_and_say_where) {
  const Json gone = Json::value_t::discarded;
  const std::vector<Damage> damages = {
      {"/schema", gone, "it has no whole number \"schema\""},
      {"/name", 7, "name must be a text"},
      {"/kind", "tpu", "kind must be cpu, gpu or array"},
      {"/peaks", Json::object(), "peaks must have at least one format"},
      {"/peaks/f32/value", -1, "peaks.f32.value must be a finite number"},
      {"/peaks/f32/value", "67e12", "peaks.f32.value must be a finite number"},
      {"/peaks/f32/value", 67e9, "peaks.f32.factors must have the product 6.7e+10"},
      {"/peaks/f32/unit", "TFLOP/s", "peaks.f32.unit must be FLOP/s"},
      {"/peaks/f32/kind", "guessed", "peaks.f32.kind must be measured, simulated"},
      {"/peaks/f32/source", "", "peaks.f32.source must be a text that is not empty"},
      {"/peaks/f32/source", gone, "peaks.f32 must have a member \"source\""},
      {"/levels", 3, "levels must be a list"},
      {"/levels/2/copy", gone, "levels must end with the main memory"},
      {"/levels/0/bandwidth", 3, "levels[0] has no member \"bandwidth\""},
      {"/links/rank/beta/value", 0, "links.rank.beta.value must be above 0"},
      {"/launch", Json{{"value", 0}}, "launch.value must be above 0"},
  };
  for (const auto& damage : damages) {
    auto json = Json::parse(to_json(find_figures("h200")));
    const Json::json_pointer pointer(damage.pointer);
    if (damage.value.is_discarded()) {
      json[pointer.parent_pointer()].erase(pointer.back());
    } else {
      json[pointer] = damage.value;
    }
    try {
      parse_figures(json.dump(), "\"a.json\"");
      ADD_FAILURE() << damage.pointer << " was taken";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("\"a.json\": ") + damage.message));
    }
  }
}

TEST(MachineFigures, refuse_what_is_no_machine_at_all) {
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"),
                                  std::string("null"), std::string(100000, '[')}) {
    EXPECT_THROW(parse_figures(text, "text"), InvalidArgument);
  }
  auto json = Json::parse(to_json(find_figures("h200")));
  json["efficiencies"] = Json::parse(
      R"([{"ranks": 1, "busy": 1, "kind": "measured", "source": "s",
           "classes": {"Conv": [{"bound_s": 2, "flops_per_byte": 1, "fraction": 0}]}}])");
  EXPECT_THROW(parse_figures(json.dump(), "text"), InvalidArgument);
}

}  // namespace
}  // namespace triptych::machines
