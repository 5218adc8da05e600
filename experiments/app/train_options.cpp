// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/train_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/base/console.h"
#include "core/base/file_text.h"
#include "core/base/list_text.h"
#include "core/io/input_file.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_arrays.h"
#include "experiments/training/run_options.h"
#include "parallel/comm/mpi_session.h"

namespace triptych::app {

using training::OptionGroup;

void TrainOptions::take_processes(training::ParallelConfig& config) const {
  if (config.transport != training::Transport::Mpi) return;
  const int started = parallel::MpiSession::of_process().world_size();
  if (given("--ranks") && machine.parallel.ranks != started) {
    throw InvalidArgument(
        fmt::format("--ranks {0}, but {1} started; leave out --ranks, or start as many: "
                    "triptych launch -n {0} train …",
                    machine.parallel.ranks, counted(started, "process")));
  }
  config.ranks = started;
}

training::ExecutionConfig TrainOptions::machine_config() const {
  if (machine.contract == Contract::Int8) {
    throw UnsupportedError(
        "--contract int8 is for trained models; train in f32, then: triptych quantize --weights "
        "RUN "
        "--out FOLDER");
  }
  auto config = machine;
  take_processes(config.parallel);
  config.threads = threads_per_rank(config);
  return config;
}

void TrainOptions::add_groups(Command& target, const std::vector<OptionGroup>& groups) {
  add_options(target, groups, {.run = &run, .machine = &machine, .command = &command});
}

void TrainOptions::add_to(Command& target) {
  using enum OptionGroup;
  model.takes_arrays = true;
  add_experiment_to(target);
  add_groups(target, {Steps});
  add_groups(target, {Folder, Keeping});
  add_groups(target, {Machine, Backends, Choice, Graph, Simulation});
  add_groups(target, {Ranks, Replay});
  target.fits_later_with("--resume");
}

void TrainOptions::add_repeated_to(Command& target) {
  using enum OptionGroup;
  takes_share_ = false;
  add_experiment_to(target);
  add_groups(target, {Steps});
  add_groups(target, {Keeping});
  add_groups(target, {Machine, Choice, Graph, Simulation});
}

void TrainOptions::add_experiment_to(Command& target) {
  using enum OptionGroup;
  add_trial_to(target);
  add_groups(target, {Rate});
  add_groups(target, {Length});
  add_groups(target, {Evaluation});
}

void TrainOptions::add_trial_to(Command& target) {
  using enum OptionGroup;
  app_ = target;
  std::vector<OptionGroup> data = {Data};
  if (model.takes_arrays) data.push_back(Arrays);
  if (takes_share_) data.push_back(Share);
  add_groups(target, data);
  model.add_to(target);
  add_groups(target, {Learning});
  if (model.takes_arrays) refuse_options_of_images(target);
}

void TrainOptions::set_length(training::RunConfig& config) const {
  const bool by_epochs = given("--epochs"), by_steps = given("--steps");
  if (!by_epochs && !by_steps) return;
  config.epochs = by_epochs ? run.epochs : 0;
  config.steps = by_steps ? run.steps : 0;
}

namespace {

constexpr std::int64_t kMaxNamesBytes = 1 << 16;

/// The names themselves, or those on the lines of the file of that name.
std::string class_names(const std::string& text) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(text, ignored)) return text;
  std::string names;
  const auto content = read_file(text, kMaxNamesBytes);
  for (const char letter : without_byte_order_mark(content)) {
    if (letter != '\r') names += letter == '\n' ? ',' : letter;
  }
  while (names.ends_with(',')) names.pop_back();
  return names;
}

}  // namespace

training::DataConfig TrainOptions::data() const {
  auto data = run.data;
  data.class_names = class_names(data.class_names);
  for (auto* path : {&data.source, &data.images, &data.masks, &data.list}) {
    const bool names_a_path = !path->empty() && !(path == &data.source && *path == "synthetic");
    if (names_a_path) *path = std::filesystem::absolute(*path).string();
  }
  if (!data.target.empty()) data.target = std::filesystem::absolute(data.target).string();
  return data;
}

void TrainOptions::set_inputs(training::RunConfig& config) const {
  const auto* network = training::imported_network(config.model);
  if (network == nullptr || run.data.inputs.empty()) return;
  auto files = training::files_of_inputs(network->model(), run.data.inputs);
  for (auto& file : files) file = std::filesystem::absolute(file).string();
  config.data.inputs = std::move(files);
}

void TrainOptions::print_unasked_data() const {
  for (const auto* option : {"--data", "--images", "--masks"})
    if (given(option)) return;
  if (!run.data.inputs.empty()) return;
  say(fmt::format("no --data: training on {} generated images; --data FOLDER trains on yours",
                  run.data.synthetic_images));
}

void TrainOptions::require_share_applies(const training::DataConfig& data) const {
  if (!takes_share_ || !given("--validation") || data.list.empty()) return;
  const auto list = segmentation::read_list(data.list);
  if (std::ranges::count(list, data.validation_split, &segmentation::ListEntry::split) == 0) return;
  throw InvalidArgument(fmt::format(
      "--validation does not apply with \"{}\", which has a split \"{}\"; leave --validation out",
      data.list, data.validation_split));
}

training::RunConfig TrainOptions::config() const {
  training::RunConfig config = run;
  config.data = data();
  for (auto* path : {&config.init, &config.init_names})
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  config.model = model.config({.loss = config.training.loss, .inputs = config.data.inputs});
  set_inputs(config);
  // A mirrored digit is no digit any more.
  if (!config.model.maps && !given("--augmentation")) config.augmentation = {};
  set_length(config);
  validate(config);
  require_share_applies(config.data);
  return config;
}

void require_maps(const training::RunConfig& config, std::string_view command) {
  if (config.model.maps) return;
  throw UnsupportedError(fmt::format(
      "{} judges maps of classes, and \"{}\" makes one row for each example; use train and "
      "evaluate",
      command, config.model.name));
}

bool TrainOptions::given(std::string_view option) const {
  return std::ranges::any_of(app_.given(), [&](const auto& one) { return one.name == option; });
}

std::vector<std::string> TrainOptions::given_names() const {
  std::vector<std::string> names;
  for (auto& option : app_.given()) names.push_back(std::move(option.name));
  return names;
}

void TrainOptions::apply_to(training::ExecutionConfig& saved) const {
  const auto names = given_names();
  training::apply_on_resume({.given = names, .config = run, .machine = machine}, saved);
}

std::vector<std::string> TrainOptions::resumption(const std::string& folder) const {
  using enum training::ResumePolicy;
  std::vector<std::string> arguments = {"--resume", folder};
  for (const auto& option : app_.given()) {
    const auto& name = option.name;
    const auto policy = training::run_option(name).resume;
    const bool again = (policy == Replaceable || policy == Free) && name != "--resume" &&
                       name != "--previous" && name != "--ranks";
    if (again) arguments.push_back(option.text ? fmt::format("{}={}", name, *option.text) : name);
  }
  return arguments;
}

namespace {

/// The options of a stored run as the command line has them.
std::map<std::string, std::string> texts_of(training::SavedRun& saved) {
  std::map<std::string, std::string> texts;
  for (const auto& row : training::run_options()) {
    auto value = value_in(row, saved.config);
    if (!value) value = value_in(row, saved.machine);
    if (value && !row.name.empty()) texts[std::string(row.name)] = text_of(*value);
  }
  return texts;
}

}  // namespace

void TrainOptions::apply_to(training::SavedRun& saved) const {
  const auto names = given_names();
  auto asked = run;
  asked.data = data();
  set_length(asked);
  training::apply_on_resume({.given = names, .config = asked, .machine = machine}, saved.config,
                            saved.machine);
  auto& ranks = saved.machine.parallel;
  take_processes(ranks);
  saved.machine.threads = threads_per_rank(saved.machine);
  set_inputs(saved.config);
  validate(saved.config);
  app_.require_fitting(texts_of(saved));
}

}  // namespace triptych::app
