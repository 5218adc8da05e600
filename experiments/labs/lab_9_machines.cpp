// Lab 9, "One U-Net, three machines": the same weights on each machine, and what it brings to
// share a network out by data or by layers.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "experiments/labs/all_labs.h"
#include "experiments/labs/sheet.h"

namespace triptych::labs {
namespace {

/// A simulated machine maps its DRAM of 2 GiB, of which it touches little.
constexpr Limits kLimits = {.bytes = std::int64_t{4} << 30};

/// The results of a command of this program. Throws InvalidArgument with its words when it fails.
page::Json results_of(Bench& bench, const std::vector<std::string>& command) {
  const auto ending = bench.run(command, kLimits);
  if (ending.good()) return page::Json::parse(ending.output).at("results");
  const auto words = first_lines(ending.error, 3, bench.folder().string());
  throw InvalidArgument(words.empty() ? command[1] + " " + ending.said(kLimits) : words);
}

/// A strategy on two GPUs, modelled, beside one of them.
struct Strategy {
  std::int64_t bytes = 0;  ///< that a rank sends
  double gain_percent = 0;
};

/// unet-m on the survey's GPUs.
class Model {
 public:
  Model(Bench& bench, std::int64_t batch, std::int64_t size)
      : results_(results_of(
            bench,
            {"triptych", "bench", "strategies", "--device", "rtx2070super", "--link", "pcie3x8",
             "--model", "unet-m", "--strategies", "dp,layers,pipeline:2", "--ranks", "2", "--batch",
             std::to_string(batch), "--size", std::to_string(size), "--json"})) {}

  Strategy of(const std::string& name) const {
    for (const auto& row : results_) {
      if (row.at("strategy") == name && row.at("assumptions") == "plain")
        return {row.at("bytes_sent").get<std::int64_t>(),
                row.at("speedup_percent").at("value").get<double>()};
    }
    throw InvalidArgument(fmt::format("the table has no strategy {}", name));
  }

 private:
  page::Json results_;
};

void grade_bits(const Sheet& sheet, Bench& bench, Report& report) {
  const auto machines =
      results_of(bench, {"triptych", "compare", "--model", "unet-s", "--synthetic-images", "5",
                         "--epochs", "1", "--batch", "2", "--seed", "1", "--backends",
                         "cpu,systolic", "--out", "report.html", "--overwrite", "--json"})
          .at("machines");
  const auto weights = [&](std::size_t machine) {
    return machines.at(machine).at("weights_sha256").get<std::string>().substr(0, 12);
  };
  constexpr const char* hint = "copy the twelve digits that step 2 prints under weights";
  report.exact("weights_cpu", 4, sheet.problem_of_value("weights_cpu", weights(0), hint));
  report.exact("weights_systolic", 4, sheet.problem_of_value("weights_systolic", weights(1), hint));
  // The emulation takes too long for a check. Its bits are the CPU's, which other tests hold.
  report.exact("weights_cuda_emulated", 4,
               sheet.problem_of_value("weights_cuda_emulated", weights(0), hint));
}

/// A percentage to one decimal.
std::string percent_problem(const Sheet& sheet, const std::string& name, double value) {
  const double rounded = std::round(10 * value) / 10;
  return sheet.problem_of_formula(name, {{{}, rounded}}, "step 3 has it under speedup %");
}

void grade_table(const Sheet& sheet, Bench& bench, Report& report) {
  const Model model(bench, 4, 128);
  const auto data = model.of("dp"), layers = model.of("layers");
  report.exact("dp_bytes", 5,
               sheet.problem_of_value("dp_bytes", data.bytes, "it is bytes_sent of step 3"));
  report.exact("layers_bytes", 5,
               sheet.problem_of_value("layers_bytes", layers.bytes, "it is bytes_sent of step 3"));
  report.exact("dp_gain", 5, percent_problem(sheet, "dp_gain", data.gain_percent));
  report.exact("layers_gain", 5, percent_problem(sheet, "layers_gain", layers.gain_percent));
}

void grade_formulas(const Sheet& sheet, Bench& bench, RandomStream& hidden, Report& report) {
  std::vector<Sample> data, layers;
  for (const std::int64_t size : {64, 128}) {
    const auto batch = 2 * (1 + hidden.below(5));
    const Model model(bench, batch, size);
    const Variables at = {{"batch", static_cast<double>(batch)},
                          {"size", static_cast<double>(size)}};
    data.push_back({at, static_cast<double>(model.of("dp").bytes)});
    layers.push_back({at, static_cast<double>(model.of("layers").bytes)});
  }
  report.exact(
      "formula dp_bytes_at", 8,
      sheet.problem_of_formula("dp_bytes_at", data, "how many images has a gradient?", 1e-3));
  report.exact(
      "formula layers_bytes_at", 8,
      sheet.problem_of_formula("layers_bytes_at", layers,
                               "activations are there for each image and each pixel", 1e-3));
}

/// Asks `right` of the model at the student's batch and size, "NAME_batch" and "NAME_size".
std::string found_problem(const Sheet& sheet, Bench& bench, const std::string& name,
                          std::string (*right)(const Model&)) {
  std::int64_t batch = 0, size = 0;
  std::string problem;
  if (!sheet.read_whole(name + "_batch", batch, problem)) return problem;
  if (!sheet.read_whole(name + "_size", size, problem)) return problem;
  if (batch < 2 || batch > 32 || batch % 2 != 0 || size < 32 || size > 256 || size % 16 != 0)
    return fmt::format(
        "a batch of {} images of {} x {} is not asked for: even, 2 to 32, and a "
        "multiple of 16 from 32 to 256",
        batch, size, size);
  try {
    problem = right(Model(bench, batch, size));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return problem.empty() ? problem
                         : fmt::format("with {} images of {} x {} {}", batch, size, size, problem);
}

std::string layers_win(const Model& model) {
  const auto data = model.of("dp"), layers = model.of("layers");
  if (layers.gain_percent > data.gain_percent) return {};
  return fmt::format("layers gain {:.1f} % and dp {:.1f} %", layers.gain_percent,
                     data.gain_percent);
}

std::string pipeline_pays(const Model& model) {
  const auto pipeline = model.of("pipeline:2");
  if (pipeline.gain_percent > 0) return {};
  return fmt::format("pipeline:2 gains {:.1f} % over one GPU", pipeline.gain_percent);
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  RandomStream hidden(submission.seed(), 9);
  const Sheet sheet(submission, "formulas.json");
  grade_bits(sheet, bench, report);
  grade_table(sheet, bench, report);
  grade_formulas(sheet, bench, hidden, report);
  report.exact("layers_win", 6, found_problem(sheet, bench, "layers_win", layers_win));
  report.exact("pipeline_pays", 6, found_problem(sheet, bench, "pipeline_pays", pipeline_pays));
}

constexpr std::string_view kYesOrNo[] = {"same_weights"};

std::vector<Prediction> predictions(Bench& bench) {
  const Model model(bench, 4, 128), twice(bench, 8, 128);
  const auto factor = [&](const char* name) {
    return static_cast<double>(twice.of(name).bytes) / static_cast<double>(model.of(name).bytes);
  };
  return {{"same_weights", 5, "yes", 0},
          {"dp_megabytes", 5, static_cast<double>(model.of("dp").bytes) / 1e6, 0.1},
          {"dp_factor", 5, factor("dp"), 0.05},
          {"layers_factor", 5, factor("layers"), 0.05}};
}

constexpr Explanation kExplanations[] = {
    {"q1", 4, "cad5f5c0a51675e29fe7abfe574b7b566b7ff62d242a8736932c5cbce3a3b996",
     "in which order does each machine add the products of an output?"},
    {"q2", 4, "a54f464bcae99ef8c21c69abeee1999bbc8f03d246a5dbc8e24de058da45f7e3",
     "count the bytes for twice the batch"},
    {"q3", 4, "1e889c49725639a6e0a843e03b23130a319e17727158a32173f4c33b3d7e4d2b",
     "while the second GPU works on its half of the layers, what does the first one do?"},
    {"q4", 4, "bcce48d648af136303650ff60d6d9b7548a05dadc3070d0ff81bf45454aa5c60",
     "which activations does a U-Net's second half need of its first?"},
    {"q5", 4, "6c27096e14bc8bc87292e27388e24f677d92cec5c8cfd145e6f8b1ea915255d1",
     "which of the times in the table were measured, and on what?"},
};

}  // namespace

Lab lab_9_machines() {
  return {.number = 9,
          .slug = "machines",
          .title = "One U-Net, three machines",
          .question = "does the survey's table of two GPUs hold?",
          .grade = grade,
          .predictions = predictions,
          .yes_or_no = kYesOrNo,
          .explanations = kExplanations};
}

}  // namespace triptych::labs
