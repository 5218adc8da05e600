// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_option_rows.h"

namespace triptych::training::rows {
namespace {

using enum OptionGroup;
using enum ResumePolicy;
using enum RankPolicy;
using enum Storage;
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

std::vector<RunOption> image_rows() {
  return {
      {.name = "--data",
       .help = "folder with images/ and masks/ of PNG, TIFF or JPEG files, or, of a network that "
               "tells images apart, with one folder per class; or \"synthetic\"",
       .group = Data,
       .member = of_data<&D::source>,
       .for_images = true,
       .resume = Replaceable,
       .ranks = Own,
       .field = "data.source"},
      {.name = "--input",
       .help = "of an ONNX file: [NAME=]FILE.npy for each of its inputs, a row per example",
       .group = Arrays,
       .member = of_data<&D::inputs>,
       .help_default = false,
       .resume = Replaceable,
       .ranks = Own,
       .field = "data.inputs",
       .storage = Later,
       .written_with = "data.inputs"},
      {.name = "--target",
       .help = ".npy of what is wanted of these rows",
       .group = Arrays,
       .member = of_data<&D::target>,
       .conditions = {{"--input"}},
       .resume = Replaceable,
       .ranks = Own,
       .field = "data.target",
       .storage = Later,
       .written_with = "data.inputs"},
      {.name = "--images",
       .help = "folder of images, instead of DATA/images",
       .group = Data,
       .member = of_data<&D::images>,
       .for_images = true,
       .resume = Replaceable,
       .ranks = Own,
       .field = "data.images"},
      {.name = "--masks",
       .help = "folder of masks, instead of DATA/masks",
       .group = Data,
       .member = of_data<&D::masks>,
       .for_images = true,
       .resume = Replaceable,
       .ranks = Own,
       .field = "data.masks"},
      {.name = "--mask-pattern",
       .help = "names of masks, as {name}_mask.tif; without it those of the images",
       .group = Data,
       .member = of_data<&D::mask_pattern>,
       .for_images = true,
       .field = "data.mask_pattern",
       .storage = Later},
      {.name = "--list",
       .help = "CSV: which images to use (column id, image, name or file), perhaps their split (or "
               "set, subset) and mask",
       .group = Data,
       .member = of_data<&D::list>,
       .for_images = true,
       .resume = Replaceable,
       .ranks = Own,
       .field = "data.list"},
      {.name = "--train-split",
       .help = "name in the list's column split",
       .group = Data,
       .member = of_data<&D::train_split>,
       .for_images = true,
       .conditions = {{"--list"}},
       .field = "data.train_split"},
      {.name = "--validation-split",
       .help = "name in the list's column split",
       .group = Data,
       .member = of_data<&D::validation_split>,
       .for_images = true,
       .conditions = {{"--list"}},
       .field = "data.validation_split"},
      {.name = "--validation",
       .help = "share of images that validate when the list does not say",
       .group = Share,
       .member = of_data<&D::validation_fraction>,
       .limits = NumberLimits{0, 0.95},
       .field = "data.validation_fraction"},
      {.name = "--labels",
       .help = "values of masks by class, as 0,128,255; or above-half, below-half, instances (all "
               "but 0 is the target); without it what the masks' values suggest",
       .group = Data,
       .member = of_data<&D::labels>,
       .for_images = true,
       .field = "data.labels",
       .storage = Later,
       .written_with = "data.labels",
       .completed = true},
      {.name = "--ignore-label",
       .help = "value of masks whose pixels neither train nor count; -1: none",
       .group = Data,
       .member = of_data<&D::ignore_label>,
       .limits = WholeLimits{-1, 65535},
       .field = "data.ignore_label",
       .storage = Later},
      {.name = "--class-names",
       .help = "of class 0, 1, …, as background,nucleus, or a file with one on each line",
       .group = Data,
       .member = of_data<&D::class_names>,
       .field = "data.class_names",
       .storage = Later},
      {.name = "--normalize",
       .help = "numbers by which each channel is brought to one scale: dataset (mean and deviation "
               "of the training images), image (of each image itself) or percentiles (1 and 99.8 "
               "of each image become 0 and 1)",
       .group = Data,
       .member = of_data<&D::normalize>,
       .for_images = true,
       .field = "data.normalize",
       .storage = Later},
      {.name = "--cache",
       .help = "most MiB of images in memory, of each process; the others are read when they are "
               "drawn; 0: half of what is available",
       .group = Data,
       .member = of_data<&D::cache_mib>,
       .limits = WholeLimits{0, kMaxMemoryMib},
       .for_images = true,
       .resume = Replaceable,
       .ranks = Own,
       .field = "data.cache_mib",
       .storage = Later},
      {.name = "--invert",
       .help = "the target is what the mask leaves dark",
       .group = Data,
       .member = of_data<&D::invert>,
       .for_images = true,
       .conditions = {{.option = "--labels", .applies = false}},
       .field = "data.invert"},
      {.name = "--synthetic-images",
       .help = "images to generate",
       .group = Data,
       .member = of_data<&D::synthetic_images>,
       .limits = WholeLimits{2, 100000},
       .for_images = true,
       .conditions = {{"--data", {"synthetic"}},
                      {.option = "--images", .applies = false},
                      {.option = "--masks", .applies = false}},
       .field = "data.synthetic_images"},
  };
}

/// Fields without an option of `train`.
std::vector<RunOption> recorded_rows() {
  return {
      {.member = of_data<&D::sha256>,
       .field = "data.sha256",
       .storage = Later,
       .written_with = "data.inputs",
       .completed = true},
      {.member = of_data<&D::sections>,
       .field = "data.sections",
       .storage = Later,
       .absent = R"("apart")"},
      {.member = of_data<&D::normalize_channels>,
       .field = "data.normalize_channels",
       .storage = Later,
       .absent = R"("together")"},
      {.member = of_data<&D::palette>,
       .field = "data.palette",
       .storage = Later,
       .written_with = "data.palette",
       .completed = true},
      {.member = of_data<&D::shares>,
       .field = "data.shares",
       .storage = Later,
       .written_with = "data.shares",
       .completed = true},
      {.name = "--folds",
       .help = "parts that the images are cut into",
       .group = Folds,
       .member = of_data<&D::folds>,
       .limits = WholeLimits{0, 1000},
       .given_limits = WholeLimits{2, 1000},
       .field = "data.folds",
       .storage = Later,
       .written_with = "data.folds"},
      {.member = of_data<&D::fold>,
       .field = "data.fold",
       .storage = Later,
       .written_with = "data.folds"},
  };
}

std::vector<RunOption> model_rows() {
  return {
      {.name = "--model",
       .help = "unet-s, unet-m, unet-l, cnn, mlp, or an ONNX file",
       .group = Model,
       .member = of_model<&P::name>,
       .field = "model.name"},
      {.name = "--freeze",
       .help = "of an ONNX file: names of weights that stay as they are, as encoder.*,pos*",
       .group = Freeze},
      {.name = "--base",
       .help = "channels of the first level",
       .group = Preset,
       .member = of_model<&P::base>,
       .limits = WholeLimits{1, 4096},
       .help_default = false,
       .for_images = true,
       .field = "model.base"},
      {.name = "--depth",
       .help = "number of downs (U-Net) or layers",
       .group = Preset,
       .member = of_model<&P::depth>,
       .limits = WholeLimits{1, 10},
       .help_default = false,
       .for_images = true,
       .field = "model.depth"},
      {.name = "--size",
       .help = "height and width of a training image",
       .group = Preset,
       .member = of_model<&P::size>,
       .limits = WholeLimits{1, 16384},
       .help_default = false,
       .for_images = true,
       .field = "model.size"},
      {.name = "--in-channels",
       .help = "1: grey, 3: RGB, up to 5",
       .group = Preset,
       .member = of_model<&P::in_channels>,
       .limits = WholeLimits{1, 5},
       .help_default = false,
       .for_images = true,
       .field = "model.in_channels"},
      {.name = "--classes",
       .help = "1 for a binary mask, else the number of classes",
       .group = Preset,
       .member = of_model<&P::classes>,
       .limits = WholeLimits{1, 255},
       .help_default = false,
       .for_images = true,
       .field = "model.classes"},
  };
}

}  // namespace

std::vector<RunOption> data() {
  auto rows = image_rows();
  for (auto part : {recorded_rows(), model_rows()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace triptych::training::rows
