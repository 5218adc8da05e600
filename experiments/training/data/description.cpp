// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/io/picture.h"
#include "core/io/sha256.h"
#include "experiments/training/data/lettering.h"
#include "experiments/training/data/normalization.h"
#include "experiments/training/data/picture_files.h"
#include "experiments/training/data/picture_set.h"
#include "experiments/training/data/sample_reader.h"

namespace triptych::segmentation {
namespace {

constexpr std::int64_t kSideOfThumbnail = 128, kGap = 4, kPairsInRow = 4;

/// Sums over all values of all images.
struct Moments {
  double count = 0;
  double sum = 0;
  double squares = 0;
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();

  void add(std::span<const float> values) {
    for (const auto value : values) {
      sum += value;
      squares += double{value} * value;
    }
    const auto [low, high] = std::ranges::minmax(values);
    least = std::min<double>(least, low);
    greatest = std::max<double>(greatest, high);
    count += static_cast<double>(values.size());
  }
  ValueRange range() const {
    if (count == 0) return {};
    const auto mean = sum / count;
    return {least, greatest, mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
  }
};

std::string digest_of(const Picture& picture) {
  Sha256 hash;
  const std::int64_t form[] = {picture.form.width, picture.form.height, picture.form.channels};
  hash.update(std::as_bytes(std::span(form)));
  hash.update(std::as_bytes(std::span(picture.samples)));
  return hash.finish();
}

class Describer {
 public:
  explicit Describer(const DatasetOptions& options)
      : options_(options), masks_in_set_({options.labels, options.classes, {}, options.ignored}) {}

  DatasetDescription describe() {
    auto& said = description_;
    const auto pairs = pair_pictures(options_, said.note);
    for (const auto& pair : pairs) {
      ++said.images;
      if (!pair.split.empty()) ++said.splits[pair.split];
      guarded([&] { add_image(pair); });
      if (pair.mask.empty()) {
        said.without_mask.push_back(pair.name);
        if (form_note_.empty()) form_note_ = other_form_note(pair.image, options_.masks);
      } else {
        guarded([&] { add_mask(pair); });
      }
      options_.on_file();
    }
    list_lone_masks(pairs);
    said.values = moments_.range();
    add_note(images_in_set_.note());
    count_labels();
    suggest();
    return std::move(said);
  }

 private:
  template <class Call>
  void guarded(const Call& call) {
    try {
      call();
    } catch (const MemoryLimitError&) {
      throw;  // the picture may be sound
    } catch (const Error& error) {
      auto& damaged = description_.damaged;  // an image is read for its mask, too
      if (std::ranges::count(damaged, std::string_view(error.what())) == 0)
        damaged.emplace_back(error.what());
    }
  }

  void add_image(const PicturePair& pair) {
    auto& file = images_.of(pair.image);
    const auto picture = file.read(pair.page);
    const auto conflict =
        images_in_set_.add(pair.image.string(), file.form(pair.page), file.orientation());
    if (!conflict.empty() && conflict_.empty()) conflict_ = conflict;
    file.file().named([&] { require_intensities(picture); });
    ++description_.forms[triptych::describe(picture.form)];
    channels_.insert(picture.form.channels);
    moments_.add(picture.samples);
    add_scale(pair.name, picture);
    const auto [first, is_new] = digests_.try_emplace(digest_of(picture), pair);
    if (is_new) return;
    description_.duplicates.push_back(
        {first->second.name, pair.name, first->second.split, pair.split});
  }

  /// Row by row, without a copy of the picture.
  void add_scale(const std::string& name, const Picture& picture) {
    const auto channels = static_cast<std::size_t>(picture.form.channels);
    std::vector<float> row(static_cast<std::size_t>(picture.form.width));
    const auto visit = [&](const TakeValues& take) {
      for (std::size_t first = 0; first < picture.samples.size(); first += row.size() * channels) {
        for (std::size_t channel = 0; channel < channels; ++channel) {
          for (std::size_t x = 0; x < row.size(); ++x) {
            row[x] = picture.samples[first + x * channels + channel];
          }
          take(static_cast<std::int64_t>(channel), row);
        }
      }
    };
    const auto values = values_of(visit, picture.form.channels, {});
    std::vector<double> deviations;
    for (std::size_t i = 0; i < values.constant.size(); ++i)
      deviations.push_back(values.constant[i] ? 0 : values.normalization.deviation[i]);
    scale_.add(name, std::move(deviations));
  }

  void add_mask(const PicturePair& pair) {
    auto& file = masks_.of(pair.mask);
    const auto& image = images_.of(pair.image);
    require_same_sections(file, image);
    const auto& wanted = image.form(pair.page);
    const auto mask = file.read(pair.page);
    if (mask.form.width != wanted.width || mask.form.height != wanted.height) {
      throw IoError(fmt::format("\"{}\" has {} x {} pixels, its image has {} x {}",
                                pair.mask.string(), mask.form.width, mask.form.height, wanted.width,
                                wanted.height));
    }
    file.file().named([&] {
      masks_in_set_.add(summarize(mask_values(mask, options_.labels), pair.mask.string()));
    });
    ++description_.masks;
  }

  /// Settles the meaning of the masks' numbers, as a training does.
  void count_labels() {
    try {
      masks_in_set_.decide();
    } catch (const IoError& error) {
      description_.suggestions.emplace_back(error.what());
    }
    add_note(masks_in_set_.note());
    masks_found_ = census_of(masks_in_set_.masks(), options_.ignored);
    description_.labels = masks_found_.pixels;
    if (!options_.ignored) return;
    const auto all = census_of(masks_in_set_.masks(), std::nullopt).pixels;
    const auto found = all.find(*options_.ignored);
    if (found != all.end()) description_.ignored = found->second;
  }

  void add_note(const std::string& text) {
    auto& note = description_.note;
    if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
  }

  void list_lone_masks(const std::vector<PicturePair>& pairs) {
    std::error_code ignored;
    if (options_.masks.empty() || !options_.list.empty() ||
        std::filesystem::equivalent(options_.masks, options_.images, ignored)) {
      return;
    }
    std::set<std::filesystem::path> used;
    for (const auto& pair : pairs) used.insert(pair.mask);
    for (const auto& mask : list_pictures(options_.masks).images) {
      if (!used.contains(mask)) description_.without_image.push_back(mask.filename().string());
    }
  }

  void suggest() {
    auto& said = description_;
    const auto add = [&](std::string_view text) { said.suggestions.emplace_back(text); };
    if (!said.without_mask.empty())
      add("draw the masks that are missing, or name by a list what trains");
    if (!form_note_.empty()) add(form_note_);
    if (!said.damaged.empty()) add("replace the files that cannot be read");
    if (std::ranges::any_of(said.duplicates, [](const Duplicate& both) {
          return both.first_split != both.second_split;
        })) {
      add("put duplicates into one split: what validates must not have trained");
    } else if (!said.duplicates.empty()) {
      add("remove duplicates, or put them into one split");
    }
    const auto far = scale_.far_images();
    if (!conflict_.empty()) {
      add(conflict_);
    } else if (channels_.size() > 1) {
      add("bring all images to one number of channels");
    } else if (!far.empty()) {
      add(far);
    }
    if (channels_.size() == 1 && *channels_.begin() > 1) {
      add(fmt::format("the option in-channels {} reads all channels", *channels_.begin()));
    }
    suggest_labels();
  }

  /// Adds the notes of training about the values of the masks.
  void suggest_labels() {
    if (masks_found_.pixels.empty()) return;
    try {
      derive_labels(masks_found_, 1, false);
    } catch (const InvalidArgument& error) {
      description_.suggestions.emplace_back(error.what());
    }
  }

  const DatasetOptions& options_;
  DatasetDescription description_;
  OpenPicture images_{Palette::Colours};
  OpenPicture masks_{Palette::Indices};
  ImageSet images_in_set_{false};
  MaskSet masks_in_set_;
  SetScale scale_;
  std::string conflict_;   ///< between the numbers of two images
  std::string form_note_;  ///< on a mask that has a name in another Unicode form
  MaskCensus masks_found_;
  Moments moments_;
  std::set<std::int64_t> channels_;
  std::map<std::string, PicturePair> digests_;
};

/// Draws a picture without some of its pixels, so that it fits a square. The values are stretched
/// from the least to the greatest one. Without colours it shows the first channel.
void draw(const Picture& picture, std::int64_t left, std::int64_t top, Image& sheet) {
  const auto& form = picture.form;
  const auto longer = std::max(form.width, form.height);
  const auto side = std::min(kSideOfThumbnail, longer);
  const auto width = std::max<std::int64_t>(1, form.width * side / longer);
  const auto height = std::max<std::int64_t>(1, form.height * side / longer);
  const auto [low, high] = std::ranges::minmax(picture.samples);
  const auto scale = high > low ? 255 / (high - low) : 0.0F;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const auto pixel = y * form.height / height * form.width + x * form.width / width;
      for (std::int64_t c = 0; c < sheet.channels; ++c) {
        const auto value =
            picture
                .samples[static_cast<std::size_t>(pixel * form.channels + (form.colours ? c : 0))];
        const auto level =
            std::isfinite(value) ? std::clamp((value - low) * scale, 0.0F, 255.0F) : 0;
        const auto at = ((top + y) * sheet.width + left + x) * sheet.channels + c;
        sheet.samples[static_cast<std::size_t>(at)] =
            static_cast<std::uint16_t>(std::lround(level));
      }
    }
  }
}

/// The mask in colours: black for the least value, then a hue for each value in ascending order.
Picture coloured(const Picture& mask) {
  constexpr std::array<std::array<float, 3>, 8> colours = {{{0, 0, 0},
                                                            {255, 255, 255},
                                                            {255, 64, 64},
                                                            {64, 128, 255},
                                                            {255, 208, 0},
                                                            {64, 224, 64},
                                                            {255, 64, 255},
                                                            {0, 224, 224}}};
  const std::set<float> values(mask.samples.begin(), mask.samples.end());
  std::map<float, std::size_t> ranks;
  for (const auto value : values) ranks.emplace(value, ranks.size());
  Picture result = {.form = mask.form, .samples = {}};
  result.form.channels = 3;
  result.form.colours = true;
  const auto step = static_cast<std::size_t>(mask.form.channels);
  for (std::size_t i = 0; i < mask.samples.size(); i += step) {
    const auto rank = ranks.at(mask.samples[i]);
    const auto& colour = colours[rank < colours.size() ? rank : 1 + (rank - 1) % 7];
    result.samples.insert(result.samples.end(), colour.begin(), colour.end());
  }
  return result;
}

}  // namespace

DatasetDescription describe_dataset(const DatasetOptions& options) {
  return Describer(options).describe();
}

Image contact_sheet(const DatasetOptions& options, std::int64_t count) {
  std::string note;
  const auto pairs = pair_pictures(options, note);
  const auto shown = std::clamp<std::int64_t>(count, 1, std::ssize(pairs));
  const auto columns = std::min(kPairsInRow, shown), rows = (shown + columns - 1) / columns;
  const auto cell = kSideOfThumbnail + kGap, row = cell + kLetterHeight + kGap;
  Image sheet;
  sheet.channels = 3;
  sheet.width = 2 * columns * cell - kGap;
  sheet.height = rows * row;
  sheet.samples.assign(static_cast<std::size_t>(3 * sheet.pixels()), 255);
  OpenPicture images(Palette::Colours), masks(Palette::Indices);
  for (std::int64_t i = 0; i < shown; ++i) {
    const auto& pair = pairs[static_cast<std::size_t>(i * std::ssize(pairs) / shown)];
    const auto left = i % columns * 2 * cell, top = i / columns * row;
    draw_text(pair.name, left, top + cell, 2 * cell - kGap, sheet);
    try {
      draw(images.of(pair.image).read(pair.page), left, top, sheet);
      if (pair.mask.empty()) continue;
      const auto mask = masks.of(pair.mask).read(pair.page);
      draw(mask.form.colours ? mask : coloured(mask), left + cell, top, sheet);
    } catch (const Error&) {
      continue;  // the description names it
    }
  }
  return sheet;
}

}  // namespace triptych::segmentation
