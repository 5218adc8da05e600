// Output files of a prediction: a mask, probabilities, objects, outlines over the picture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "core/io/image.h"
#include "core/io/picture.h"
#include "experiments/training/data/components.h"
#include "experiments/training/segmenter.h"

namespace triptych::training {

enum class PredictionFile : std::uint8_t { Mask, Probabilities, Instances, Overlay };

/// Value of a class in a mask.
enum class MaskValues : std::uint8_t {
  Levels,   ///< class k of n is k floor(255 / (n - 1)), to be looked at
  Classes,  ///< its number
  Labels,   ///< the value that it had in the masks of the training
};

/// How pixels of a class become objects.
enum class Objects : std::uint8_t {
  Components,  ///< its parts that are connected by four neighbours
  Watershed,   ///< of its probability, see segmentation::watershed
};

/// Kind of the files: PNG, with probabilities as .npy, or TIFF, with a page of floats per class.
enum class PictureFormat : std::uint8_t { Png, Tiff };

struct PredictionFileOptions {
  PictureFormat format = PictureFormat::Png;
  MaskValues values = MaskValues::Levels;
  Objects objects = Objects::Components;
  float seed = 0.9F;  ///< of the watershed
  /// Classes with numbered objects. If empty, all but class 0.
  std::vector<std::int64_t> object_classes = {};
  PictureNotes notes = {};  ///< on the input, which TIFF files carry on
};

/// A file that is made of a picture: its kind, and its name within the folder of the outputs.
struct PredictionTarget {
  PredictionFile kind;
  std::filesystem::path name;
};

/// The rest of a file's name behind that of the picture: ".png", ".probabilities.npy", ...
std::string_view ending_of(PredictionFile kind, PictureFormat format);

/// The bytes of one of the files. Throws InvalidArgument when there are more objects than the
/// format can number: 65535 of a PNG.
std::string encode(PredictionFile kind, const segmentation::Sample& sample,
                   const Segmentation& predicted, const RunConfig& config,
                   const PredictionFileOptions& options);

/// Pages of a TIFF file for one image: one per class for probabilities, else one. Throws
/// InvalidArgument above 2^24 objects.
std::vector<Picture> tiff_pages(PredictionFile kind, const segmentation::Sample& sample,
                                const Segmentation& predicted, const RunConfig& config,
                                const PredictionFileOptions& options);

/// Objects of `options.object_classes`, numbered from 1. Each belongs to one class.
segmentation::Components objects_of(const Segmentation& predicted,
                                    const PredictionFileOptions& options);

/// The classes in a list of numbers and names, as "0,nucleus". Throws InvalidArgument for a class
/// that the model lacks.
std::vector<std::int64_t> parse_object_classes(const std::string& text, const RunConfig& config);

/// The values of the classes in masks, from class 0 on.
std::vector<std::uint16_t> mask_values(const RunConfig& config, MaskValues values);

/// The picture in colours, with a line of its own colour along the inside of each class but the
/// background.
Image overlay(const segmentation::Sample& sample, const Segmentation& predicted);

}  // namespace triptych::training

namespace triptych {

template <>
inline constexpr auto kNamesOf<training::PredictionFile> =
    std::to_array<std::pair<training::PredictionFile, std::string_view>>(
        {{training::PredictionFile::Mask, "mask"},
         {training::PredictionFile::Probabilities, "probabilities"},
         {training::PredictionFile::Instances, "instances"},
         {training::PredictionFile::Overlay, "overlay"}});

template <>
inline constexpr auto kNamesOf<training::PictureFormat> =
    std::to_array<std::pair<training::PictureFormat, std::string_view>>(
        {{training::PictureFormat::Png, "png"}, {training::PictureFormat::Tiff, "tiff"}});

template <>
inline constexpr auto kNamesOf<training::MaskValues> =
    std::to_array<std::pair<training::MaskValues, std::string_view>>(
        {{training::MaskValues::Levels, "levels"},
         {training::MaskValues::Classes, "classes"},
         {training::MaskValues::Labels, "labels"}});

template <>
inline constexpr auto kNamesOf<training::Objects> =
    std::to_array<std::pair<training::Objects, std::string_view>>(
        {{training::Objects::Components, "components"},
         {training::Objects::Watershed, "watershed"}});

}  // namespace triptych
