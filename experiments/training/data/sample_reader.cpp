// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/sample_reader.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/io/picture.h"

namespace triptych::segmentation {
namespace {

/// All 0 of a file that is not there.
FileState state_of(const std::filesystem::path& path) {
  struct stat found = {};
  if (path.empty() || ::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

void require_unchanged(const std::filesystem::path& path, const FileState& then) {
  const auto now = state_of(path);
  if (now == then) return;
  throw IoError(fmt::format("\"{}\" was {} since the data set was opened; bring it back as it was",
                            path.string(), now == FileState{} ? "removed" : "changed"));
}

/// Result of `call`. Its errors get the file's name.
template <class Call>
auto named(const std::filesystem::path& file, const Call& call) {
  try {
    return call();
  } catch (const IoError& error) {
    throw IoError(fmt::format("\"{}\": {}", file.string(), error.what()));
  }
}

}  // namespace

void require_intensities(std::span<const float> values) {
  constexpr float largest = 1e6F;
  for (const auto value : values) {
    if (std::abs(value) <= largest) continue;
    throw IoError(
        fmt::format("it has a value of {}; values must be finite and within {} on either side of 0",
                    value, largest));
  }
}

void require_intensities(const Picture& picture) {
  if (picture.form.floating) require_intensities(std::span(picture.samples));
}

SampleReader::SampleReader(const DatasetOptions& options, std::vector<PicturePair> pairs)
    : options_(options),
      pairs_(std::move(pairs)),
      images_(Palette::Colours),
      masks_(Palette::Indices),
      images_in_set_(options.by_itself) {
  for (std::size_t place = 0; place < pairs_.size(); ++place) {
    const auto& pair = pairs_[place];
    const auto& file = images_.of(pair.image);
    const auto& form = file.form(pair.page);
    const auto conflict = images_in_set_.add(pair.image.string(), form, file.orientation());
    if (!conflict.empty()) throw IoError(conflict);
    forms_.push_back({.name = pair.name,
                      .split = pair.split,
                      .channels = options_.channels,
                      .height = form.height,
                      .width = form.width,
                      .stack = pair.pages > 1 ? pair.image.stem().string() : std::string(),
                      .place = place});
    files_.push_back({state_of(pair.image), state_of(pair.mask)});
  }
}

Sample SampleReader::image(std::size_t place) {
  const auto& pair = pairs_[place];
  auto sample = forms_[place];
  sample.image = load_sample(images_.of(pair.image), pair.page, options_.channels).image;
  options_.on_file();
  return sample;
}

MaskValues SampleReader::mask(std::size_t place) {
  const auto& pair = pairs_[place];
  const auto& sample = forms_[place];
  if (pair.mask.empty()) {
    const auto note = other_form_note(pair.image, options_.masks);
    throw IoError(fmt::format("image \"{}\" has no mask in \"{}\"{}{}", pair.image.string(),
                              options_.masks.string(), note.empty() ? "" : "; ", note));
  }
  auto& file = masks_.of(pair.mask);
  if (file.pages() != pair.pages) require_same_sections(file, images_.of(pair.image));
  const auto& form = file.form(pair.page);
  if (form.width != sample.width || form.height != sample.height) {
    throw IoError(fmt::format("\"{}\" has {} x {} pixels, its image has {} x {}",
                              pair.mask.string(), form.width, form.height, sample.width,
                              sample.height));
  }
  const auto picture = file.read(pair.page);
  options_.on_file();
  return file.file().named([&] { return mask_values(picture, options_.labels); });
}

MaskSummary SampleReader::summary(std::size_t place, const MaskValues& mask) const {
  const auto& file = pairs_[place].mask;
  return named(file, [&] { return summarize(mask, file.string()); });
}

std::vector<std::uint8_t> SampleReader::labels(std::size_t place, const MaskValues& mask) const {
  // A table first: there are more pixels than values.
  constexpr std::size_t all = std::size_t{1} << 16;
  std::vector<std::int16_t> class_of(all, -1);
  std::vector<bool> used(all);
  for (const auto value : mask.values) used[value] = true;
  for (std::size_t value = 0; value < all; ++value) {
    if (!used[value]) continue;
    const auto one = named(pairs_[place].mask, [&] {
      return masks_in_set_->meaning(static_cast<std::uint16_t>(value), mask.shown);
    });
    class_of[value] = static_cast<std::int16_t>(
        one == options_.ignored ? int{kIgnored} : map_->class_of(one, mask.full_scale));
  }
  std::vector<std::uint8_t> labels(mask.values.size());
  bool known = true;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto found = class_of[mask.values[i]];
    known = known && found >= 0;
    labels[i] = static_cast<std::uint8_t>(found);
  }
  if (known) return labels;
  const auto bad =
      std::ranges::find_if(mask.values, [&](auto value) { return class_of[value] < 0; });
  refuse_value(place, *bad, *map_);
}

void SampleReader::set_labels(const LabelMap& map, MaskSet masks) {
  map_ = map;
  masks_in_set_ = std::move(masks);
  options_.on_file = [] {};
}

Sample SampleReader::whole(std::size_t place) {
  const auto& pair = pairs_[place];
  require_unchanged(pair.image, files_[place].image);
  require_unchanged(pair.mask, files_[place].mask);
  auto sample = image(place);
  if (map_) sample.labels = labels(place, mask(place));
  return sample;
}

void SampleReader::refuse_value(std::size_t place, std::uint16_t value, const LabelMap& map) const {
  throw IoError(fmt::format(
      "\"{}\" has a pixel of value {}, which no class has: the labels are {}; correct the "
      "mask, or state other labels, or that value as the one to be ignored, in a new run",
      pairs_[place].mask.string(), value, map.text()));
}

Sample load_sample(PictureFile& file, std::int64_t page, std::int64_t channels) {
  return load_rows(file, page, channels, {0, file.form(page).height});
}

Sample load_rows(PictureFile& file, std::int64_t page, std::int64_t channels, const Band& band) {
  auto picture = file.read(page, {0, band.top, file.form(page).width, band.height});
  Sample sample;
  sample.channels = channels;
  sample.height = picture.form.height;
  sample.width = picture.form.width;
  file.file().named([&] {
    require_intensities(picture);
    sample.image = to_planes(std::move(picture), channels);
  });
  return sample;
}

}  // namespace triptych::segmentation
