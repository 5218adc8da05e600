// Rows of the table of options. A row is a paragraph: identity, help, then unusual properties.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_option_rows.h"

namespace triptych::training::rows {
namespace {

using enum OptionGroup;
using enum ResumePolicy;
using enum RankPolicy;
using D = DataConfig;
using P = ModelConfig;

template <auto Member>
Value of_data(RunConfig& run) {
  return value_of_member(run.data.*Member);
}

template <auto Member>
Value of_model(ModelConfig& preset) {
  return value_of_member(preset.*Member);
}

std::vector<RunOption> file_rows() {
  // clang-format off
  return {
      {.name = "--data", .group = Data, .member = of_data<&D::source>, .field = "data.source",
       .value = "DIR",
       .help = "folder with images/ and masks/ of PNG, TIFF or JPEG files, or with one folder per "
          "class for a classifier, or \"synthetic\"",
       .for_images = true, .resume = Replaceable, .ranks = Own},
      {.name = "--input", .group = Arrays, .member = of_data<&D::inputs>, .field = "data.inputs",
       .value = "[NAME=]FILE",
       .help = "[NAME=]FILE.npy for each input of an ONNX file, with one row per example",
       .help_default = false,
       .resume = Replaceable, .ranks = Own, .written_with = "data.inputs"},
      {.name = "--target", .group = Arrays, .member = of_data<&D::target>, .field = "data.target",
       .value = "FILE",
       .help = "FILE.npy with the target of each row",
       .conditions = {{"--input"}}, .resume = Replaceable, .ranks = Own,
       .written_with = "data.inputs"},
      {.name = "--images", .group = Data, .member = of_data<&D::images>, .field = "data.images",
       .value = "DIR",
       .help = "folder of images, instead of DATA/images",
       .for_images = true, .resume = Replaceable, .ranks = Own},
      {.name = "--masks", .group = Data, .member = of_data<&D::masks>, .field = "data.masks",
       .value = "DIR",
       .help = "folder of masks, instead of DATA/masks",
       .for_images = true, .resume = Replaceable, .ranks = Own},
      {.name = "--mask-pattern", .group = Data, .member = of_data<&D::mask_pattern>,
       .field = "data.mask_pattern",
       .value = "PATTERN",
       .help = "names of masks, such as {name}_mask.tif (default: the names of the images)",
       .for_images = true},
      {.name = "--list", .group = Data, .member = of_data<&D::list>, .field = "data.list",
       .value = "FILE",
       .help = "CSV of the images to use (column id, image, name or file), with optional columns "
          "split (or set, subset) and mask",
       .for_images = true, .resume = Replaceable, .ranks = Own},
      {.name = "--train-split", .group = Data, .member = of_data<&D::train_split>,
       .field = "data.train_split",
       .value = "NAME",
       .help = "value of the column split for training",
       .for_images = true, .conditions = {{"--list"}}},
      {.name = "--validation-split", .group = Data, .member = of_data<&D::validation_split>,
       .field = "data.validation_split",
       .value = "NAME",
       .help = "value of the column split for validation",
       .for_images = true, .conditions = {{"--list"}}},
      {.name = "--validation", .group = Share, .member = of_data<&D::validation_fraction>,
       .field = "data.validation_fraction",
       .value = "FRACTION",
       .help = "fraction of images used for validation, unless the list has splits",
       .limits = NumberLimits{0, 0.95}},
  };
  // clang-format on
}

std::vector<RunOption> mask_rows() {
  // clang-format off
  return {
      {.name = "--labels", .group = Data, .member = of_data<&D::labels>, .field = "data.labels",
       .value = "VALUES",
       .help = "mask value of each class, such as 0,128,255, or above-half, below-half, instances "
          "(all values but 0 are the target). Default: derived from the masks",
       .for_images = true, .written_with = "data.labels", .completed = true},
      {.name = "--ignore-label", .group = Data, .member = of_data<&D::ignore_label>,
       .field = "data.ignore_label",
       .help = "mask value of pixels that neither train nor count (-1: none)",
       .limits = WholeLimits{-1, 65535}},
      {.name = "--class-names", .group = Data, .member = of_data<&D::class_names>,
       .field = "data.class_names",
       .value = "NAMES",
       .help = "names of class 0, 1, …, such as background,nucleus, or a file with one name per "
          "line"},
      {.name = "--normalize", .group = Data, .member = of_data<&D::normalize>,
       .field = "data.normalize",
       .help = "statistics that scale each channel: dataset (mean and deviation of the training "
          "images), image (of each image) or percentiles (1 and 99.8 of each image become 0 and 1)",
       .for_images = true},
      {.name = "--cache", .group = Data, .member = of_data<&D::cache_mib>,
       .field = "data.cache_mib",
       .value = "MIB",
       .help = "memory for images per process in MiB, or with a unit: 2GiB (0: half of the "
          "available memory). The others are read for each use",
       .limits = WholeLimits{0, kMaxMemoryMib}, .unit = Unit::Mebibytes, .for_images = true,
       .resume = Replaceable,
       .ranks = Own},
      {.name = "--invert", .group = Data, .member = of_data<&D::invert>, .field = "data.invert",
       .help = "use the dark part of each mask as the target",
       .for_images = true, .conditions = {{.option = "--labels", .applies = false}}},
      {.name = "--synthetic-images", .group = Data, .member = of_data<&D::synthetic_images>,
       .field = "data.synthetic_images",
       .help = "number of images to generate",
       .limits = WholeLimits{2, 100000}, .for_images = true,
       .conditions = {{"--data", {"synthetic"}}, {.option = "--images", .applies = false},
                      {.option = "--masks", .applies = false}}},
  };
  // clang-format on
}

/// Fields without an option of `train`.
std::vector<RunOption> recorded_rows() {
  // clang-format off
  return {
      {.member = of_data<&D::sha256>, .field = "data.sha256",
       .written_with = "data.inputs", .completed = true},
      {.member = of_data<&D::sections>, .field = "data.sections"},
      {.member = of_data<&D::normalize_channels>, .field = "data.normalize_channels"},
      {.member = of_data<&D::palette>, .field = "data.palette",
       .written_with = "data.palette", .completed = true},
      {.member = of_data<&D::shares>, .field = "data.shares",
       .written_with = "data.shares", .completed = true},
      {.name = "--folds", .group = Folds, .member = of_data<&D::folds>, .field = "data.folds",
       .help = "number of parts of the images",
       .limits = WholeLimits{0, 1000}, .given_limits = WholeLimits{2, 1000},
       .written_with = "data.folds"},
      {.member = of_data<&D::fold>, .field = "data.fold",
       .written_with = "data.folds"},
  };
  // clang-format on
}

std::vector<RunOption> model_rows() {
  // clang-format off
  return {
      {.name = "--model", .group = Model, .member = of_model<&P::name>, .field = "model.name",
       .value = "MODEL",
       .help = "unet-s, unet-m, unet-l, cnn, mlp, or an ONNX file"},
      {.name = "--freeze", .group = Freeze,
       .value = "NAMES",
       .help = "names of weights of an ONNX file that do not train, such as encoder.*,pos*"},
      {.name = "--base", .group = Preset, .member = of_model<&P::base>, .field = "model.base",
       .help = "channels of the first level",
       .limits = WholeLimits{1, 4096}, .help_default = false,
       .for_images = true},
      {.name = "--depth", .group = Preset, .member = of_model<&P::depth>, .field = "model.depth",
       .help = "number of levels below the first (U-Net) or of layers",
       .limits = WholeLimits{1, 10}, .help_default = false,
       .for_images = true},
      {.name = "--size", .group = Preset, .member = of_model<&P::size>, .field = "model.size",
       .help = "height and width of a training image",
       .limits = WholeLimits{1, 16384}, .help_default = false,
       .for_images = true},
      {.name = "--in-channels", .group = Preset, .member = of_model<&P::in_channels>,
       .field = "model.in_channels",
       .help = "channels of an image: 1 (grey), 3 (RGB) or up to 5",
       .limits = WholeLimits{1, 5}, .help_default = false,
       .for_images = true},
      {.name = "--classes", .group = Preset, .member = of_model<&P::classes>,
       .field = "model.classes",
       .help = "1 for a binary mask, else the number of classes",
       .limits = WholeLimits{1, 255}, .help_default = false,
       .for_images = true},
  };
  // clang-format on
}

}  // namespace

std::vector<RunOption> data() {
  auto rows = file_rows();
  for (auto part : {mask_rows(), recorded_rows(), model_rows()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace triptych::training::rows
