// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/checkpoint_metadata.h"
#include "core/io/input_file.h"
#include "core/io/output_ledger.h"
#include "experiments/training/bad_number.h"
#include "experiments/training/epoch_json.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/saved_fields.h"

namespace triptych::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kLossesTensor = "run.losses";
constexpr const char* kEpochsTensor = "run.epochs";    // JSON text
constexpr std::string_view kEstimated = "estimated.";  // begins an estimate's name
constexpr const char* kOpenEpoch = "open_epoch";       // only of a checkpoint within an epoch
/// JSON text: times that chose kernels, by measurement_key.
constexpr const char* kKernelTimesTensor = "run.kernel_times";
/// Steps of each stretch, the number of contributions, and their ranks.
constexpr const char* kUpdatesTensor = "run.updates";
constexpr std::int64_t kMostUpdateBytes = std::int64_t{1} << 28;
// Images go from 0 to 1, those of floating values further.
constexpr NumberLimits kMean = {-1e6, 1e6};
constexpr NumberLimits kDeviation = {0, 1e6, true};

fs::path checkpoint_folder(const fs::path& folder) { return folder / kCheckpointFolder; }

std::string run_json(const SavedRun& run) {
  Json json = {{"config", Json::parse(to_json(run.config))},
               {"normalization",
                {{"mean", run.normalization.mean}, {"deviation", run.normalization.deviation}}}};
  write_machine(json, run.machine);
  if (run.open_epoch.steps > 0) json[kOpenEpoch] = open_epoch_json(run.open_epoch);
  return json.dump();
}

Tensor tensor_of_text(std::string_view text) {
  Tensor bytes(TensorSpec{DType::U8, Shape{std::ssize(text)}});
  std::ranges::copy(text, bytes.as<std::uint8_t>().begin());
  return bytes;
}

/// Histories are stored with the tensors, because the checkpoint's index must stay small.
TensorMap histories_of(const SavedRun& run) {
  Json epochs = Json::array();
  for (const auto& epoch : run.epochs) epochs.push_back(epoch_json(epoch));
  TensorMap histories;
  histories.emplace(kLossesTensor, Tensor(Shape{std::ssize(run.losses)}, run.losses));
  histories.emplace(kEpochsTensor, tensor_of_text(epochs.dump()));
  if (!run.machine.kernel_times.empty())
    histories.emplace(kKernelTimesTensor, tensor_of_text(Json(run.machine.kernel_times).dump()));
  if (!run.updates.empty()) {
    std::vector<std::int64_t> updates;
    for (const auto& [steps, ranks] : run.updates) {
      updates.insert(updates.end(), {steps, std::ssize(ranks)});
      updates.insert(updates.end(), ranks.begin(), ranks.end());
    }
    histories.emplace(kUpdatesTensor, Tensor(Shape{std::ssize(updates)}, updates));
  }
  return histories;
}

Tensor take(TensorMap& tensors, const char* name, DType dtype) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.dtype() != dtype) {
    throw IoError(fmt::format("it has no \"{}\"; is it of a training run?", name));
  }
  auto tensor = std::move(found->second);
  tensors.erase(found);
  return tensor;
}

void take_histories(TensorMap& tensors, SavedRun& run) {
  const auto losses = take(tensors, kLossesTensor, DType::F32);
  run.losses.assign(losses.as<float>().begin(), losses.as<float>().end());
  const auto epochs = take(tensors, kEpochsTensor, DType::U8);
  const auto text = epochs.as<std::uint8_t>();
  for (const auto& epoch : Json::parse(text.begin(), text.end())) {
    run.epochs.push_back(epoch_from_json(epoch));
  }
}

void take_kernel_times(TensorMap& tensors, SavedRun& run) {
  if (!tensors.contains(kKernelTimesTensor)) return;
  const auto tensor = take(tensors, kKernelTimesTensor, DType::U8);
  const auto text = tensor.as<std::uint8_t>();
  const auto all = Json::parse(text.begin(), text.end());
  for (const auto& [key, times] : all.items())
    run.machine.kernel_times.emplace(key, times.get<std::string>());
}

void take_updates(TensorMap& tensors, SavedRun& run) {
  if (!tensors.contains(kUpdatesTensor)) return;
  const auto tensor = take(tensors, kUpdatesTensor, DType::I64);
  auto rest = tensor.as<std::int64_t>();
  while (!rest.empty()) {
    const auto count = rest.size() < 2 ? -1 : rest[1];
    if (count < 0 || count > std::ssize(rest) - 2)
      throw IoError(fmt::format("its \"{}\" ends within a stretch", kUpdatesTensor));
    auto& stretch = run.updates.emplace_back();
    stretch.steps = rest[0];
    for (const auto rank : rest.subspan(2, static_cast<std::size_t>(count)))
      stretch.ranks.push_back(static_cast<int>(rank));
    rest = rest.subspan(2 + static_cast<std::size_t>(count));
  }
}

std::vector<float> numbers_from(const Json& json, const char* name, const NumberLimits& limits) {
  std::vector<float> numbers;
  read_list(json, name, numbers);
  for (float& number : numbers) require_within(name, limits, number);
  return numbers;
}

segmentation::Normalization normalization_from(const Json& json, std::int64_t channels) {
  segmentation::Normalization normalization = {
      .mean = numbers_from(json, "mean", kMean),
      .deviation = numbers_from(json, "deviation", kDeviation)};
  const auto count = std::ssize(normalization.mean);
  if (count != std::ssize(normalization.deviation) || (count != 1 && count != channels)) {
    throw InvalidArgument(
        fmt::format("\"normalization\" has {} numbers for {} channels", count, channels));
  }
  return normalization;
}

void require_finite(const TensorMap& states) {
  for (const auto& [name, tensor] : states) {
    if (const auto bad = bad_number_in(tensor)) {
      throw InvalidArgument(
          fmt::format("\"{}\" holds {}: such weights give no result; start again with a lower "
                      "value of the option lr",
                      name, *bad));
    }
  }
}

/// Moves the estimates out of `tensors`.
void take_statistics(TensorMap& tensors, SavedRun& run) {
  const auto first = tensors.lower_bound(std::string(kEstimated));
  auto last = first;
  for (; last != tensors.end() && last->first.starts_with(kEstimated); ++last)
    run.statistics.emplace(last->first.substr(kEstimated.size()), std::move(last->second));
  tensors.erase(first, last);
  for (const auto& [name, statistic] : run.statistics) {
    const auto state = tensors.find(name);
    if (state == tensors.end() || state->second.spec() != statistic.spec())
      throw IoError(fmt::format("it has an estimate of \"{}\", which is no state of it", name));
  }
}

/// The estimates as a checkpoint has them.
TensorSources sources_of_statistics(const TensorMap& statistics) {
  TensorSources sources;
  for (const auto& [name, tensor] : sources_of(statistics))
    sources.emplace(std::string(kEstimated) + name, tensor);
  return sources;
}

SavedRun run_of(Checkpoint checkpoint) {
  const auto json = Json::parse(checkpoint.info.run_json);
  SavedRun run;
  run.config = run_config_from_json(json.at("config").dump());
  run.machine = read_machine(json);
  run.normalization = normalization_from(json.at("normalization"), run.config.model.in_channels);
  if (json.contains(kOpenEpoch)) run.open_epoch = open_epoch_from_json(json.at(kOpenEpoch));
  take_histories(checkpoint.tensors, run);
  take_updates(checkpoint.tensors, run);
  take_kernel_times(checkpoint.tensors, run);
  if (std::ssize(run.losses) != checkpoint.info.step) {
    throw IoError(
        fmt::format("it has {} losses of {} steps", run.losses.size(), checkpoint.info.step));
  }
  require_finite(checkpoint.tensors);
  take_statistics(checkpoint.tensors, run);
  run.states = std::move(checkpoint.tensors);
  return run;
}

SavedRun load(const fs::path& folder, CheckpointAge age) {
  auto checkpoint = load_checkpoint(checkpoint_folder(folder), age);
  const auto step = checkpoint.info.step;
  const auto named = [&](const char* problem) {
    return fmt::format("\"{}\", checkpoint of step {}: {}", folder.string(), step, problem);
  };
  try {
    auto run = run_of(std::move(checkpoint));
    attach_network(run.config, folder / kModelFile);
    return run;
  } catch (const nlohmann::json::exception& error) {
    throw IoError(named(error.what()));
  } catch (const IoError& error) {
    throw IoError(named(error.what()));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(named(error.what()));
  }
}

/// The checkpoint before the newest, which `damage` keeps from being loaded.
SavedRun load_previous(const fs::path& folder, const IoError& damage) {
  try {
    auto run = load(folder, CheckpointAge::Previous);
    run.notes.insert(run.notes.begin(),
                     fmt::format("the newest checkpoint is damaged: {}. The one before it, of step "
                                 "{}, takes its place",
                                 damage.what(), run.losses.size()));
    return run;
  } catch (const Error& error) {
    throw IoError(fmt::format("{}; nor can the checkpoint before it be used: {}", damage.what(),
                              error.what()));
  }
}

/// `states`, each checked before it is written.
TensorSources checked(TensorSources states, const fs::path& folder) {
  for (auto& [name, source] : states) {
    source.read = [read = std::move(source.read), name = name, folder] {
      auto tensor = read();
      if (const auto bad = bad_number_in(tensor)) {
        throw NumericError(
            fmt::format("\"{}\" has come to hold {}; the checkpoint in \"{}\" is from before and "
                        "stays: start a new run with a lower value of the option lr",
                        name, *bad, folder.string()));
      }
      return tensor;
    };
  }
  return states;
}

}  // namespace

void require_same_images(const SavedRun& run, const segmentation::Normalization& now,
                         const fs::path& folder) {
  if (now == run.normalization) return;
  throw InvalidArgument(fmt::format(
      "the training images are not those of the run in \"{}\": their mean is {}, it "
      "was {}; bring them back, or start a new run",
      folder.string(), fmt::join(now.mean, ", "), fmt::join(run.normalization.mean, ", ")));
}

bool holds_run(const fs::path& folder) { return has_checkpoint(checkpoint_folder(folder)); }

SavedRun load_run(const fs::path& folder, CheckpointAge age) {
  if (!holds_run(folder)) {
    throw IoError(
        fmt::format("\"{}\" holds no checkpoint; give the folder that `triptych train` "
                    "wrote",
                    folder.string()));
  }
  if (age == CheckpointAge::Previous) return load(folder, age);
  try {
    return load(folder, age);
  } catch (const IoError& damage) {
    return load_previous(folder, damage);
  }
}

SavedRun load_trained(const fs::path& folder, CheckpointAge age) {
  const bool best = age == CheckpointAge::Newest && holds_run(folder / kBestFolder);
  const bool last = folder.filename() == kCheckpointFolder && holds_run(folder.parent_path());
  auto run = load_run(best ? folder / kBestFolder : last ? folder.parent_path() : folder, age);
  if (best) {
    run.notes.push_back(fmt::format(
        "these are the weights of the best evaluation, after epoch {}; {} has the last ones",
        run.epochs.size(), (folder / kCheckpointFolder).string()));
  }
  for (auto& [name, statistic] : run.statistics) run.states.at(name) = std::move(statistic);
  run.statistics.clear();
  return run;
}

std::vector<UpdateStretch> load_updates(const fs::path& folder) {
  const auto path = folder / kUpdatesFile;
  std::istringstream file(fs::exists(path) ? read_file(path, kMostUpdateBytes) : std::string());
  std::string line;
  if (!std::getline(file, line) || line != "steps,ranks") {
    throw IoError(fmt::format(
        "\"{}\" is no order of updates; give the folder of a run with an asynchronous strategy",
        path.string()));
  }
  std::vector<UpdateStretch> updates;
  while (std::getline(file, line)) {
    auto& stretch = updates.emplace_back();
    char comma = 0;
    std::istringstream words(line);
    words >> stretch.steps >> comma;
    for (int rank = 0; words >> rank;) stretch.ranks.push_back(rank);
    if (comma != ',' || !words.eof() || stretch.steps < 1) {
      throw IoError(fmt::format("line {} of \"{}\" is not \"steps,rank rank …\"",
                                updates.size() + 1, path.string()));
    }
  }
  return updates;
}

void save_run(const fs::path& folder, const SavedRun& run, TensorSources states) {
  const auto step = std::ssize(run.losses);
  const auto histories = histories_of(run);
  states.merge(sources_of_statistics(run.statistics));
  states = checked(std::move(states), folder);
  states.merge(sources_of(histories));
  save_checkpoint_from(checkpoint_folder(folder), states,
                       {.step = step,
                        .epoch = std::ssize(run.epochs),
                        .seed = run.config.training.seed,
                        .samples_drawn = step * run.config.training.batch,
                        .model_json = to_json(run.config.model),
                        .run_json = run_json(run)});
  std::string csv = "step,loss\n";
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    csv += fmt::format("{},{:.9g}\n", i + 1, run.losses[i]);
  }
  write_file_atomically(folder / kLossesFile, csv);
  if (run.updates.empty()) return;
  csv = "steps,ranks\n";
  for (const auto& [steps, ranks] : run.updates)
    csv += fmt::format("{},{}\n", steps, fmt::join(ranks, " "));
  write_file_atomically(folder / kUpdatesFile, csv);
}

void require_room(const fs::path& folder) {
  if (holds_run(folder)) {
    throw InvalidArgument(
        fmt::format("\"{0}\" holds a run already; go on with it by the option resume {0}, or give "
                    "the option out another "
                    "folder",
                    folder.string()));
  }
  auto existing = fs::absolute(folder);
  std::error_code ignored;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (::access((existing / "").c_str(), W_OK | X_OK) != 0) {
    internal::throw_errno("write to", existing);
  }
  const OutputLedger own(folder);
  for (const auto* file : {kLossesFile, kMetricsFile, kUpdatesFile, kModelFile}) own.require(file);
  for (const auto* file : kReportFiles) own.require(file);
  own.require_all_of(kBestFolder, [](const std::string&) { return false; });
  const auto left = left_by_killed_saves(checkpoint_folder(folder));
  own.require_all_of(checkpoint_folder({}),
                     [&](const std::string& name) { return left.contains(name); });
}

void remove_leavings(const fs::path& folder) {
  for (const auto& run : {folder, folder / kBestFolder}) {
    remove_temporaries(run);
    remove_temporaries_below(run / kMasksFolder);
    remove_killed_saves(checkpoint_folder(run));
  }
}

void make_folder(const fs::path& folder) { triptych::make_folder(folder); }

RunLock::RunLock(const fs::path& folder) : run_(folder) {
  for (const auto& place : {folder, folder / kBestFolder}) {
    const auto checkpoints = place / kCheckpointFolder;
    std::error_code ignored;
    const auto real = fs::canonical(checkpoints, ignored);
    if (ignored || real == fs::canonical(folder) / checkpoints.lexically_relative(folder)) continue;
    // A folder of checkpoints on another disk is the run's, one within another run is not.
    if (fs::exists(real.parent_path() / kLossesFile, ignored)) {
      throw InvalidArgument(fmt::format(
          "\"{}\" leads to the checkpoints of the run in \"{}\", which would be replaced; resume "
          "that run, or put a copy of its folder in the link's place",
          checkpoints.string(), real.parent_path().string()));
    }
    linked_.push_back(std::make_unique<FolderLock>(real));
  }
}

}  // namespace triptych::training
