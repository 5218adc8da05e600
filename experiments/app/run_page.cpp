// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/base/list_text.h"
#include "core/io/base64.h"
#include "core/io/input_file.h"
#include "core/io/output_ledger.h"
#include "core/io/strict_json.h"
#include "experiments/app/evaluation_page.h"
#include "experiments/app/row_report.h"
#include "experiments/measure/document.h"
#include "experiments/page/format.h"
#include "experiments/page/page.h"
#include "experiments/page/record.h"
#include "experiments/training/run_folder.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;
using page::Chart;
using page::JsonView;
using page::Table;

constexpr ReportField kEpochColumns[] = {{"epoch", "epoch"},
                                         {"loss", "loss"},
                                         {"validation_loss", "validation loss", "nat"},
                                         segmentation::kDice,
                                         segmentation::kIou,
                                         segmentation::kPixelError,
                                         {"learning_rate", "learning rate"}};
/// The same for a model that makes rows, not maps.
constexpr ReportField kRowColumns[] = {{"epoch", "epoch"},
                                       {"loss", "loss"},
                                       {"validation_loss", "validation loss"},
                                       {"accuracy", "accuracy", "%"},
                                       {"learning_rate", "learning rate"}};

std::string machine_name(const JsonView& machine) {
  return fmt::format("{} ({})", machine["backend"].text(), machine["contract"].text());
}

void add_point(page::ChartSeries& series, double x, const JsonView& y,
               const std::string& x_path = {}) {
  if (y.null()) return;
  series.points.push_back({.x = x, .y = y.number(), .x_origin = {x_path}, .y_origin = {y.path()}});
}

/// A curve over the epochs for each of the columns `keys`, of each machine.
Chart epoch_chart(Chart chart, const JsonView& machines, std::span<const ReportField> columns,
                  std::initializer_list<std::string_view> keys) {
  chart.x = {.label = "epoch", .unit = "count", .whole = true};
  for (const auto& machine : machines.items()) {
    for (const auto key : keys) {
      const auto& column = *std::ranges::find(columns, key, &ReportField::key);
      page::ChartSeries series;
      series.name = machines.size() == 1
                        ? std::string(column.name)
                        : fmt::format("{}: {}", machine["backend"].text(), column.name);
      series.colour = chart.series.size();
      for (const auto& epoch : machine["epochs"].items())
        add_point(series, epoch["epoch"].number(), epoch[column.key], epoch["epoch"].path());
      if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
  }
  return chart;
}

bool makes_rows(const JsonView& machines) {
  const auto models = machines.items();
  return !models.empty() && models.front()["model"]["maps"].json() == page::Json(false);
}

Chart quality_chart(const JsonView& machines) {
  Chart chart{.id = "quality", .title = "Quality on the validation images"};
  chart.y = {.label = "share", .unit = "%"};
  if (makes_rows(machines))
    return epoch_chart(std::move(chart), machines, kRowColumns, {"accuracy"});
  return epoch_chart(std::move(chart), machines, kEpochColumns, {"dice", "iou"});
}

Chart validation_chart(const JsonView& machines) {
  Chart chart{.id = "validation", .title = "Loss on the training and the validation images"};
  chart.y = {.label = "loss", .unit = "1"};
  return epoch_chart(std::move(chart), machines, kEpochColumns, {"loss", "validation_loss"});
}

Chart rate_chart(const JsonView& machines) {
  Chart chart{.id = "rate", .title = "Learning rate at the end of each epoch"};
  chart.y = {.label = "learning rate", .unit = "1"};
  return epoch_chart(std::move(chart), machines, kEpochColumns, {"learning_rate"});
}

Chart loss_chart(const JsonView& machines) {
  Chart chart{.id = "loss", .title = "Loss of every training step"};
  chart.x = {.label = "step", .unit = "count", .whole = true};
  chart.y = {.label = "loss", .unit = "1"};
  for (const auto& machine : machines.items()) {
    page::ChartSeries series;
    series.name = machine["backend"].text();
    series.colour = chart.series.size();
    double step = 0;
    for (const auto& loss : machine["losses"].items()) add_point(series, ++step, loss);
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

Table loss_table(const JsonView& machines) {
  Table table{.id = "losses", .caption = "Loss of every training step"};
  table.columns = {"machine", "step", "loss"};
  for (const auto& machine : machines.items()) {
    std::size_t step = 0;
    for (const auto& loss : machine["losses"].items()) {
      table.rows.push_back({page::text_cell(machine_name(machine)),
                            page::text_cell(std::to_string(++step)), page::number_cell(loss)});
    }
  }
  return table;
}

/// `id` and `caption` tell apart the tables below the charts.
Table epoch_table(const JsonView& machines, const char* id, const char* caption) {
  const auto columns =
      makes_rows(machines) ? std::span<const ReportField>(kRowColumns) : std::span(kEpochColumns);
  auto table = page::table_of(id, caption, {"machine"}, columns);
  for (const auto& machine : machines.items()) {
    for (const auto& epoch : machine["epochs"].items())
      table.rows.push_back(
          page::cells_of({page::text_cell(machine_name(machine))}, epoch, columns));
  }
  return table;
}

void write_summary(page::Page& page, const JsonView& machines) {
  page.section("run", "The run");
  Table table{.id = "machines", .caption = "Machine and weights"};
  table.columns = {"machine",    "device", "threads", "ranks",   "steps",
                   "parameters", "time",   "weights", "finished"};
  for (const auto& machine : machines.items()) {
    table.rows.push_back(
        {page::text_cell(machine_name(machine)), page::text_cell(machine["device"].text()),
         page::number_cell(machine["threads"]), page::number_cell(machine["ranks"]),
         page::number_cell(machine["steps"]), page::number_cell(machine["parameters"]),
         page::figure_cell(machine["time"]),
         page::code_cell(machine["weights_sha256"].text().substr(0, 12)),
         page::text_cell(machine["finished"].flag() ? "yes" : "no: it can be resumed")});
  }
  page.table(table);
}

void write_learning(page::Page& page, const JsonView& machines) {
  page.section("learning", "Learning");
  const auto losses = loss_chart(machines);
  if (!page::has_points(losses)) return page.missing("No step was trained.");
  page.chart(losses, loss_table(machines));
  const auto validation = validation_chart(machines);
  if (page::has_points(validation))
    page.chart(validation, epoch_table(machines, "validations", "Every evaluation"));
  const auto quality = quality_chart(machines);
  if (!page::has_points(quality))
    page.missing("No quality is known: there were no validation images.");
  if (page::has_points(quality))
    page.chart(quality, epoch_table(machines, "epochs", "Quality at every evaluation"));
  const auto rate = rate_chart(machines);
  if (page::has_points(rate))
    page.chart(rate, epoch_table(machines, "rates", "Learning rate at every evaluation"));
}

/// The scores of each class at the last evaluation and at the best one, if available.
void write_classes(page::Page& page, const JsonView& machines) {
  page.section("classes", "Classes on the validation images");
  const auto fields = page::fields_of<segmentation::ClassScores>();
  auto table = page::table_of("classes-table", "Scores of each class, without the background",
                              {"machine", "evaluation", "class"}, fields);
  const auto add = [&](const JsonView& machine, const JsonView& epoch, const char* which) {
    std::size_t label = 0;
    const auto names = split_list(machine["config"]["data"]["class_names"].text());
    for (const auto& one : epoch["classes"].items()) {
      table.rows.push_back(page::cells_of(
          {page::text_cell(machine_name(machine)),
           page::text_cell(fmt::format("{}, epoch {}", which, epoch["epoch"].text())),
           page::text_cell(class_text(names, ++label))},
          one, fields));
    }
  };
  for (const auto& machine : machines.items()) {
    const auto epochs = machine["epochs"].items();
    if (epochs.empty()) continue;
    add(machine, epochs.back(), "last");
    for (const auto& epoch : epochs) {
      if (!machine["best_epoch"].null() && epoch["epoch"].json() == machine["best_epoch"].json())
        add(machine, epoch, "best");
    }
  }
  if (table.rows.empty()) return page.missing("There were no validation images.");
  page.table(table);
}

/// The last part of a path: a page may be shown to others.
std::string source_name(const JsonView& source) {
  const fs::path path = source.text();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

void write_evaluation(page::Page& page, const JsonView& evaluation) {
  page.section("evaluation", "Evaluation");
  if (evaluation.null()) {
    page.missing(
        "No evaluation was given. Run triptych evaluate RUN --out FOLDER, then triptych page RUN "
        "--evaluation FOLDER.");
    return;
  }
  if (evaluation["examples"].size() > 0) {
    const auto& accuracy = evaluation["accuracy"];
    page.text(fmt::format(
        "{} of {}: {}loss {:.4f}; weights of {} on {} ({}).",
        counted(static_cast<std::int64_t>(evaluation["examples"].size()), "example"),
        source_name(evaluation["data"]),
        accuracy.null() ? std::string() : fmt::format("accuracy {:.4f}, ", accuracy.number()),
        evaluation["loss"].number(), evaluation["weights"].text(), evaluation["backend"].text(),
        evaluation["contract"].text()));
    return;
  }
  page.text(fmt::format("{} of {}; weights of {} on {} ({}).",
                        counted(static_cast<std::int64_t>(evaluation["images"].size()), "image"),
                        source_name(evaluation["data"]), evaluation["weights"].text(),
                        evaluation["backend"].text(), evaluation["contract"].text()));
  auto fields = page::fields_of<segmentation::ClassScores>();
  fields.insert(fields.end(),
                {{"boundary_f1", "boundary F1", "%"}, {"hausdorff95", "Hausdorff 95 (pixels)"}});
  auto table = page::table_of("evaluated", "Scores of each class", {"class"}, fields);
  for (const auto& one : evaluation["classes"].items()) {
    const auto name = one["name"].text();
    table.rows.push_back(page::cells_of(
        {page::text_cell(one["class"].text() + (name.empty() ? "" : " " + name))}, one, fields));
  }
  page.table(table);
  const ScoredImages evaluated = {"", "the evaluated images"};
  write_scores(page, evaluation, evaluated);
  if (evaluation["worst"].size() == 0) return;
  page.heading("The worst images");
  std::map<std::string, std::string> pictures;
  for (const auto& picture : evaluation["worst"].items())
    pictures[picture["name"].text()] = picture["png"].text();
  write_pictures(page, evaluation, {"", "the worst evaluated images"}, pictures);
}

/// Scores and pictures of the validation images, of each machine.
void write_predictions(page::Page& page, const JsonView& machines, const RunPictures& pictures) {
  page.section("predictions", "Predictions on the validation images");
  bool any = false;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const auto machine = machines[i];
    const auto evaluation = machine["evaluation"];
    if (evaluation.null()) continue;
    any = true;
    if (machines.size() > 1) page.heading(machine_name(machine));
    const ScoredImages images = {
        fmt::format("validation-{}-", i),
        "the validation images" + (machines.size() > 1 ? " on " + machine_name(machine) : "")};
    if (i < pictures.size()) write_pictures(page, evaluation, images, pictures[i]);
    write_scores(page, evaluation, images);
  }
  if (!any) page.missing("No validation image has a score: there are none, or the run goes on.");
}

std::string subtitle(const JsonView& first) {
  return fmt::format("{} · {} · batch {} · seed {}", first["model"]["name"].text(),
                     source_name(first["config"]["data"]["source"]), first["batch"].text(),
                     first["seed"].text());
}

}  // namespace

RunPictures run_pictures(const fs::path& folder, const page::Json& report) {
  const auto& machines = report.at("results");
  RunPictures pictures;
  for (const auto& machine : machines) {
    const auto own = machines.size() == 1 ? folder : folder / machine.value("backend", "");
    auto& files = pictures.emplace_back();
    std::error_code ignored;
    for (const auto& name : names_in(own / training::kMasksFolder, ignored)) {
      const auto file = own / training::kMasksFolder / name;
      if (file.extension() == ".png") files[file.stem().string()] = base64(read_file(file));
    }
  }
  return pictures;
}

std::string run_page(const page::Json& report, const RunPictures& pictures) {
  const page::Json valid = page::valid_text(report);
  const JsonView root(valid);
  const auto machines = root["results"];
  const auto first = machines[0];
  page::Page page("A training run", subtitle(first));
  write_summary(page, machines);
  write_learning(page, machines);
  write_classes(page, machines);
  write_predictions(page, machines, pictures);
  write_evaluation(page, root["evaluation"]);
  page.section("configuration", "Configuration");
  page.facts(first["config"]);
  page.heading("Made with");
  page.facts(root["environment"]);
  page.embed(valid);
  return page.str();
}

page::Json load_document(const fs::path& path, const std::string& command) {
  const auto problem = fmt::format("\"{}\" is no report of triptych {}", path.string(), command);
  const auto text = read_file(path);
  try {
    auto json = parse_strict<page::Json>(text);
    require_schema(json, measure::kJsonSchema, "make it again with this version");
    if (json.at("command") == command && json.at("results").is_array()) return json;
  } catch (const nlohmann::json::exception&) {  // said below
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("\"{}\": {}", path.string(), error.what()));
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}: {}", problem, error.what()));
  }
  throw IoError(problem);
}

namespace {

/// Dice of the image `name` of an evaluation, or null.
page::Json dice_of(const page::Json& evaluation, const std::string& name) {
  for (const auto& image : evaluation.value("images", page::Json::array())) {
    if (image.is_object() && image.value("name", page::Json()) == name)
      return image.value("dice", page::Json());
  }
  return nullptr;
}

}  // namespace

page::Json with_evaluation(page::Json report, const fs::path& folder) {
  const auto scores = folder / "evaluation.json";
  keep_input(scores);
  auto evaluation = load_document(scores, "evaluate").at("results").at(0);
  std::vector<fs::path> pictures;
  std::error_code ignored;
  for (const auto& name : names_in(folder / "worst", ignored)) {
    if (name.ends_with(".png")) pictures.push_back(folder / "worst" / name);
  }
  std::ranges::for_each(pictures, keep_input);
  std::vector<page::Json> worst;
  for (const auto& picture : pictures) {
    const auto name = picture.stem().string();
    worst.push_back(
        {{"name", name}, {"dice", dice_of(evaluation, name)}, {"png", base64(read_file(picture))}});
  }
  std::ranges::stable_sort(worst, {}, [](const page::Json& picture) {
    return picture["dice"].is_number() ? picture["dice"].get<double>() : 2.0;  // those without last
  });
  evaluation["worst"] = worst;
  report["evaluation"] = std::move(evaluation);
  return report;
}

void write_run_report(const fs::path& folder, const page::Json& report) {
  const page::Json valid = page::valid_text(report);
  const auto machines = JsonView(valid)["results"];
  OutputLedger own(folder);
  own.write(training::kReportFile, valid.dump(2) + "\n");
  own.write(training::kPageFile, run_page(report, run_pictures(folder, report)));
  const auto losses = loss_chart(machines), quality = quality_chart(machines);
  if (page::has_points(losses)) own.write(training::kLossChart, page::to_svg(losses));
  if (page::has_points(quality)) own.write(training::kQualityChart, page::to_svg(quality));
}

}  // namespace triptych::app
