// Everything that defines a training run but the machine: with it a run can be repeated, and a
// checkpoint that holds it can be resumed without further options.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "core/nn/training_graph.h"
#include "experiments/training/augmentation.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/data/pixel_weights.h"

namespace triptych::training {

/// Source of a run with data from its caller (LoadData), who provides them again on resume.
inline constexpr const char* kGivenData = "given";

/// Where the images come from and which of them validate.
struct DataConfig {
  /// "synthetic", kGivenData, or a folder with images/ and masks/, or with one folder of pictures
  /// per class
  std::string source = "synthetic";
  /// .npy files of the network's inputs, in their order, and of the target: they are its examples
  std::vector<std::string> inputs = {};
  std::string target = {};
  std::string sha256 = {};   ///< of those arrays, when they have been read
  std::string images;        ///< instead of source/images
  std::string masks;         ///< instead of source/masks
  std::string mask_pattern;  ///< names of masks by those of images (DatasetOptions)
  std::string list;          ///< a list file, perhaps with a column `split`
  std::string train_split = "train";
  std::string validation_split = "validation";
  double validation_fraction = 0.2;  ///< without splits in the list: drawn by the seed
  /// Number of parts for cross-validation. Part `fold`, from 0, validates. 0: none.
  std::int64_t folds = 0;
  std::int64_t fold = 0;
  bool invert = false;  ///< without labels: the target is the dark part of the mask
  /// Meaning of the masks' values (segmentation::LabelMap). Empty in a new run: the one that the
  /// masks suggest, which is stored here after reading them. For folders of classes their names by
  /// number, "cat,dog".
  std::string labels;
  std::int64_t ignore_label = -1;  ///< the mask value of pixels that do not count. -1: none
  std::string class_names;         ///< "background,nucleus": the names of the classes, or empty
  /// Colours of the numbers of the masks that trained (segmentation::MaskSet::palette).
  std::string palette;
  std::vector<double> shares = {};  ///< of the classes in the masks that trained
  segmentation::NormalizeBy normalize = segmentation::NormalizeBy::Dataset;
  segmentation::NormalizeChannels normalize_channels = segmentation::NormalizeChannels::Each;
  std::int64_t synthetic_images = 40;
  /// Validation images that are drawn: sections of a stack in a row, or, in runs of before there
  /// was a choice, each by itself.
  segmentation::Sections sections = segmentation::Sections::Together;
  std::int64_t cache_mib = 0;  ///< most MiB of images in memory. 0: half of the available memory

  segmentation::NormalizeOptions normalization() const { return {normalize, normalize_channels}; }
};

enum class Schedule : std::uint8_t { Constant, Cosine };

/// The score that selects the best evaluation. Its weights are stored in addition to the last ones.
enum class Keep : std::uint8_t { None, Dice, Loss };

/// Words of a saved configuration for a network that is no preset, with its file next to the
/// configuration.
struct NetworkReference {
  std::string sha256;
  std::vector<std::string> frozen;
  std::vector<Dims> rows = {};  ///< ImportedNetworkOptions
};

struct RunConfig {
  ModelConfig model;
  NetworkReference network = {};  ///< until attach_network. Unused afterwards
  DataConfig data;
  TrainingOptions training;
  segmentation::WeightOptions weights;     ///< of pixels in the loss
  float learning_rate = 1e-3F;             ///< at the start
  Schedule schedule = Schedule::Constant;  ///< of the learning rate. A cosine goes down to 0
  std::int64_t schedule_steps = 0;  ///< length of the cosine. 0: the whole run, fixed at its start
  std::int64_t warmup = 0;          ///< first steps, with a learning rate that rises to its start
  std::string init;                 ///< run folder or safetensors file that the weights come from
  std::vector<std::string> init_skip = {};  ///< patterns of names that are initialised nevertheless
  std::string init_names = {};              ///< file of their names there (NameMap). Empty: none
  std::string init_sha256 = {};             ///< of the loaded tensors
  std::int64_t epochs = 10;                 ///< in all. 0: only `steps` ends the run
  std::int64_t steps = 0;                   ///< in all. 0: only `epochs` ends the run
  std::int64_t steps_per_epoch = 0;         ///< 0: whole batches of the training images, at least 1
  Augmentation augmentation = {Change::Flips};
  segmentation::Drawing drawing = segmentation::Drawing::Epochs;
  /// Training batches for the new estimate of the running statistics of batch normalisation, for
  /// evaluation and for the stored weights (batch_statistics.h). 0: they stay those of training.
  std::int64_t statistics_batches = 8;
  std::int64_t checkpoint_every = 0;  ///< steps, besides those at the end of epochs. 0: no others
  Keep keep = Keep::None;
  std::int64_t patience = 0;  ///< evaluations without a better one that end the run. 0: none do
  std::size_t memory_limit_mib = 0;
  int accumulate = 1;        ///< micro-batches that make a rank's share of the batch, one by one
  std::int64_t tile = 0;     ///< of evaluation. 0: chosen by the model
  std::int64_t margin = -1;  ///< of evaluation. -1: a fourth of the tile
  /// Forward nodes of each stage of a pipeline, fixed at its start, where timing decides them.
  /// Taken again when the run is resumed on as many stages. Empty: it has no stages yet.
  std::vector<std::int64_t> cut;
};

/// True for images that are drawn, not read.
bool is_synthetic(const DataConfig& data);

/// The folders of images and of masks.
std::filesystem::path images_folder(const DataConfig& data);
std::filesystem::path masks_folder(const DataConfig& data);

/// True when the examples have one class each or more, and not values: then there is an accuracy.
inline bool has_classes(const RunConfig& config) {
  return config.training.loss != LossKind::MeanSquaredError;
}

/// Throws InvalidArgument, which contains its field, for a number beyond its limits in the table of
/// options (run_options.h).
void require_within_limits(const RunConfig& config);

/// Throws InvalidArgument for wrong values before any file is read.
void validate(const RunConfig& config);

/// JSON text of `config`, and back. Throws InvalidArgument for missing or wrong fields, and for a
/// path that is not UTF-8. A network
/// that is no preset is not in it: attach_network.
std::string to_json(const RunConfig& config);
RunConfig run_config_from_json(std::string_view json);

/// Gives the model of a configuration that was read the network that it says, from `file`. Does
/// nothing for a preset. Throws as imported_model does, and IoError for another network.
void attach_network(RunConfig& config, const std::filesystem::path& file);

/// JSON text of a model alone.
std::string to_json(const ModelConfig& model);

/// The training and validation images: by the splits of the list when it has them, else by share.
/// Throws as load_dataset does, and InvalidArgument when no training image is left.
struct TrainingData {
  segmentation::Dataset train;
  segmentation::Dataset validation;
  segmentation::Normalization normalization;
  std::string held_out;  ///< the validation set and the reason for it
  /// Batches that come ready instead of training images: that of step 0, 1, ..., each asked for
  /// once, in order, perhaps on another thread. Running statistics of batch normalisation then stay
  /// those of training.
  std::function<segmentation::Batch(std::int64_t step)> stream = {};
  std::int64_t stream_steps = 0;  ///< of an epoch of the stream
};
/// Calls `on_file` after each file of pixels.
TrainingData load_data(
    const RunConfig& config, const std::function<void()>& on_file = [] {});

/// The source of a run's data: load_data, or arrays of its caller.
using LoadData =
    std::function<TrainingData(const RunConfig& config, const std::function<void()>& on_file)>;

/// The same of images in memory: without validation images they are drawn from the others by share,
/// as from files. Throws InvalidArgument as load_data does.
TrainingData given_data(const RunConfig& config, segmentation::Dataset train,
                        segmentation::Dataset validation);

/// config.training, with weights of pixels where the run has any.
TrainingOptions training_options(const RunConfig& config);

/// The images of one split of the list, or, without a name, all that there are, or all examples of
/// arrays. Throws
/// InvalidArgument, naming the splits, when there is no such one.
segmentation::Dataset load_split(
    const RunConfig& config, const std::string& split,
    const std::function<void()>& on_file = [] {});

/// The batcher's options: patches of the model's size, changed at random as the run asks.
segmentation::BatcherOptions batcher_options(const RunConfig& config);

}  // namespace triptych::training

namespace triptych {

template <>
inline constexpr auto kNamesOf<training::Schedule> =
    std::to_array<std::pair<training::Schedule, std::string_view>>(
        {{training::Schedule::Constant, "constant"}, {training::Schedule::Cosine, "cosine"}});

template <>
inline constexpr auto kNamesOf<training::Keep> =
    std::to_array<std::pair<training::Keep, std::string_view>>({{training::Keep::None, "none"},
                                                                {training::Keep::Dice, "dice"},
                                                                {training::Keep::Loss, "loss"}});

template <>
inline constexpr auto kNamesOf<segmentation::Drawing> =
    std::to_array<std::pair<segmentation::Drawing, std::string_view>>(
        {{segmentation::Drawing::Epochs, "epochs"},
         {segmentation::Drawing::WithReplacement, "replacement"}});

}  // namespace triptych
