// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/run_classes.h"

#include <fmt/format.h>

#include "core/base/console.h"
#include "core/base/csv_text.h"
#include "core/base/interrupt.h"
#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "core/io/picture.h"
#include "experiments/app/message.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/progress.h"
#include "experiments/app/row_report.h"
#include "experiments/training/data/class_folders.h"
#include "experiments/training/data/picture_files.h"
#include "experiments/training/data/picture_set.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kClasses = "classes.csv";

void require_pictures(const training::SavedRun& run, const std::string& folder) {
  if (!run.config.data.inputs.empty()) {
    throw UnsupportedError(
        "the run is on arrays, which have no pictures: write it by triptych export RUN --out "
        "FILE.onnx, and give arrays to triptych run FILE.onnx --input");
  }
  if (fs::is_regular_file(folder))
    throw InvalidArgument(
        fmt::format("--out \"{}\" is a file; give a folder for {}", folder, kClasses));
  OutputLedger(folder).require(kClasses);
}

class Classifier {
 public:
  Classifier(const DeviceSet& machine, const training::SavedRun& run,
             const std::atomic<bool>& interrupted)
      : run_(run), predictor_(machine, run.config.model, run.states), judged_(run.config) {
    predictor_.stop_at(interrupted);
    nobody_knows_.as<std::int64_t>()[0] = segmentation::kNoClass;
  }

  /// All sections of a picture.
  void add(const fs::path& path) {
    PictureFile file(path);
    set_.add(path.string(), file.form(), file.orientation());
    for (std::int64_t page = 0; page < file.pages(); ++page) {
      auto sample =
          segmentation::scaled(segmentation::load_sample(file, page, run_.config.model.in_channels),
                               run_.config.model.size);
      const auto name = file.pages() == 1
                            ? path.string()
                            : segmentation::section_name(path.string(), page, file.pages());
      warn(name, segmentation::prepare_as_trained(sample, run_.config.data.normalization(),
                                                  run_.normalization));
      segmentation::Batch example;
      example.x = segmentation::middle_of(sample, run_.normalization, run_.config.model.size);
      judged_.add(name, predictor_.row(example), nobody_knows_);
    }
  }
  const std::vector<training::RowJudgement>& judged() const { return judged_.rows(); }
  std::string note() const { return set_.note(); }

 private:
  static void warn(const std::string& name, const std::string& warning) {
    if (!warning.empty()) say_note(fmt::format("\"{}\": {}", name, warning));
  }

  const training::SavedRun& run_;
  training::Predictor predictor_;
  training::RowEvaluation judged_;
  segmentation::ImageSet set_{true};
  Tensor nobody_knows_ = Tensor(TensorSpec{DType::I64, {1}});
};

page::Json results_json(const std::vector<training::RowJudgement>& judged,
                        const std::vector<std::string>& names) {
  page::Json results = page::Json::array();
  for (const auto& row : judged) {
    const auto label = static_cast<std::size_t>(row.predicted);
    results.push_back(
        {{"input", row.name},
         {"class", row.predicted},
         {"class_name", label < names.size() ? page::Json(names[label]) : page::Json()},
         {"probability", row.probability}});
  }
  return results;
}

std::string classes_csv(const page::Json& results) {
  std::string text = "image,class,probability\n";
  for (const auto& row : results) {
    const auto& name = row.at("class_name");
    text += fmt::format("{},{},{:.6f}\n", csv_text(row.at("input").get<std::string>()),
                        csv_text(name.is_null() ? row.at("class").dump() : name.get<std::string>()),
                        row.at("probability").get<double>());
  }
  return text;
}

}  // namespace

void run_classes(const PredictionOptions& options, const training::SavedRun& run,
                 const std::vector<fs::path>& pictures, const std::string& folder,
                 Context& context) {
  require_pictures(run, folder);
  const DeviceSet machine(options.machine_for(run));
  const InterruptGuard guard;
  Classifier classifier(machine, run, guard.interrupted());
  std::size_t left_out = 0;
  try {
    Progress progress;
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      progress.update(static_cast<std::int64_t>(i), std::ssize(pictures), pictures[i].string());
      try {
        classifier.add(pictures[i]);
      } catch (const IoError& error) {
        say_note(fmt::format("left out: {}", with_dashes(error.what())));
        ++left_out;
      }
    }
  } catch (const Interrupted&) {
    say_note("stopped; nothing was written");
    context.exit_code = kStopped;
    return;
  }
  say_note(classifier.note());
  if (classifier.judged().empty()) throw IoError("no image could be read; the notes say why");
  auto results = results_json(classifier.judged(), class_names_of(run.config));
  training::make_folder(folder);
  OutputLedger(folder).write(kClasses, classes_csv(results));
  if (left_out > 0) {
    say_note(fmt::format("{} of {} images could not be done", left_out, pictures.size()));
    context.exit_code = kUsage;
  }
  const auto count = results.size();
  if (context.json) return print_document("run", std::move(results));
  print_text("classes of {} written to {}/{}\n", counted(static_cast<std::int64_t>(count), "image"),
             folder, kClasses);
}

}  // namespace triptych::app
