// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/picture_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/fnv1a.h"
#include "core/base/list_text.h"

namespace triptych::segmentation {
namespace {

constexpr std::size_t kMostPaletteEntries = 256;

/// Pages of one file count once.
std::string named_files(const std::map<std::string, int>& files, std::string_view more) {
  return files.size() == 1
             ? std::string()
             : fmt::format(" (and {}{})", counted(std::ssize(files) - 1, "more file"), more);
}

std::string describe_samples(const PictureForm& form) {
  if (form.floating) return "floating or signed values";
  return fmt::format("{} bits", form.bits);
}

/// True for channels that are neither grey nor red, green and blue.
bool has_dyes(const PictureForm& form) { return form.channels > 1 && !form.colours; }

std::string describe_channels(const PictureForm& form) {
  if (form.colours) return "colours";
  return counted(form.channels, "channel");
}

Colour grey(std::uint16_t value) { return {value, value, value}; }

std::uint16_t luma_of(const Colour& colour) {
  const auto sum =
      std::uint64_t{19595} * colour[0] + std::uint64_t{38470} * colour[1] + 7471U * colour[2];
  return static_cast<std::uint16_t>((sum + 0x8000) >> 16);
}

std::string text_of(const Colour& colour) { return fmt::format("({})", fmt::join(colour, ", ")); }

std::uint64_t identity_of(const MaskValues& mask) {
  if (mask.lumas_shown) return MaskSummary::kLumas;
  if (mask.shown.empty()) return MaskSummary::kGreys;
  return std::max<std::uint64_t>(2, fnv1a(std::as_bytes(std::span(mask.shown))));
}

/// Throws IoError for a value beyond a palette.
Colour colour_of(std::uint16_t value, const ColourTable& shown) {
  if (shown.empty()) return grey(value);
  if (value < shown.size()) return shown[value];
  throw IoError(fmt::format("it has a pixel of number {}, and its palette has {} colours", value,
                            shown.size()));
}

std::uint16_t hex_number(std::string_view text, int base) {
  std::uint16_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error == std::errc{} && rest == text.data() + text.size()) return number;
  throw InvalidArgument(fmt::format("\"{:.40}\" is no number of a palette", text));
}

std::map<std::uint16_t, Colour> parse_palette(const std::string& text) {
  std::map<std::uint16_t, Colour> palette;
  if (text.empty()) return palette;
  for (const auto& part : split_list(text)) {
    const auto equals = part.find('=');
    if (equals == std::string::npos || part.size() != equals + 7) {
      throw InvalidArgument(
          fmt::format("\"{:.40}\" is no entry of a palette, as 1=ff0000 is", part));
    }
    const auto rest = std::string_view(part).substr(equals + 1);
    palette[hex_number(std::string_view(part).substr(0, equals), 10)] = {
        hex_number(rest.substr(0, 2), 16), hex_number(rest.substr(2, 2), 16),
        hex_number(rest.substr(4, 2), 16)};
  }
  return palette;
}

/// A value with one colour, and the mask where it was first seen.
struct Seen {
  std::uint16_t value;
  Colour colour;
  const MaskSummary* mask;
};

std::string two_meanings(const Seen& first, const Seen& other) {
  return fmt::format("number {} is {} in \"{}\", and number {} is {} in \"{}\"", first.value,
                     text_of(first.colour), first.mask->file, other.value, text_of(other.colour),
                     other.mask->file);
}

/// Two masks without a one-to-one relation of numbers and colours, or an empty text.
std::string conflict_of(const std::vector<MaskSummary>& masks,
                        std::optional<std::uint16_t> ignored) {
  std::map<std::uint16_t, Seen> by_value;
  std::map<Colour, Seen> by_colour;
  for (const auto& mask : masks) {
    for (const auto& cell : mask.cells) {
      if (cell.value == ignored) continue;
      const Seen seen = {cell.value, cell.colour, &mask};
      const auto& of_value = by_value.try_emplace(cell.value, seen).first->second;
      if (of_value.colour != cell.colour) return two_meanings(of_value, seen);
      const auto& of_colour = by_colour.try_emplace(cell.colour, seen).first->second;
      // One palette may repeat a colour.
      if (of_colour.value != cell.value && of_colour.mask->table != mask.table)
        return two_meanings(of_colour, seen);
    }
  }
  return {};
}

/// The same for the background of numbered objects. Their other numbers need no meaning.
std::string background_conflict_of(const std::vector<MaskSummary>& masks) {
  std::optional<Seen> background;
  for (const auto& mask : masks) {
    for (const auto& cell : mask.cells) {
      if (cell.value != 0) continue;
      const Seen seen = {cell.value, cell.colour, &mask};
      if (!background) background = seen;
      if (background->colour != cell.colour) return two_meanings(*background, seen);
    }
  }
  for (const auto& mask : masks) {
    for (const auto& cell : mask.cells) {
      if (background && cell.value != 0 && cell.colour == background->colour &&
          mask.table != background->mask->table)
        return two_meanings(*background, {cell.value, cell.colour, &mask});
    }
  }
  return {};
}

}  // namespace

std::string ImageSet::add(const std::string& file, const PictureForm& form, int orientation) {
  if (orientation != kAsStored) turned_.emplace(file, orientation);
  if (form.palette) palettes_.emplace(file, orientation);
  if (!first_) first_ = First{file, form};
  const auto& first = first_->form;
  const bool other_scale =
      form.floating != first.floating || (!form.floating && form.bits != first.bits);
  if (other_scale && !by_itself_) {
    return fmt::format(
        "\"{}\" has {} and \"{}\" {}: whole numbers count as fractions of their depth, floating "
        "and signed values as they are, so that equal signals would differ; bring the images to "
        "one depth, or give the option normalize image",
        first_->file, describe_samples(first), file, describe_samples(form));
  }
  const bool other_channels = (has_dyes(form) || has_dyes(first)) &&
                              (form.channels != first.channels || form.colours != first.colours);
  if (!other_channels) return {};
  return fmt::format("\"{}\" has {} and \"{}\" {}; bring the images to the same channels",
                     first_->file, describe_channels(first), file, describe_channels(form));
}

std::string ImageSet::note() const {
  std::string text;
  if (!turned_.empty()) {
    const auto& [file, orientation] = *turned_.begin();
    text = fmt::format("\"{}\"{} is {} as its EXIF block states; its mask must be drawn so", file,
                       named_files(turned_, " likewise"), describe_orientation(orientation));
  }
  if (palettes_.empty()) return text;
  return fmt::format(
      "{}{}the palette of \"{}\"{} is taken for the colours of the image; if it is for display "
      "alone, save the image without it",
      text, text.empty() ? "" : "; ", palettes_.begin()->first, named_files(palettes_, ""));
}

void require_same_sections(const PictureFile& mask, const PictureFile& image) {
  if (mask.pages() == image.pages()) return;
  throw IoError(fmt::format("\"{}\" has {}, its image \"{}\" {}{}", mask.path().string(),
                            counted(mask.pages(), "section"), image.path().string(), image.pages(),
                            image.pages() == 1 && image.form().colours
                                ? ", of red, green and blue; a stack must be saved as one, in grey"
                                : "; save both with the same sections"));
}

MaskSummary summarize(const MaskValues& mask, const std::string& file) {
  MaskSummary summary = {
      .file = file, .full_scale = mask.full_scale, .table = identity_of(mask), .cells = {}};
  std::vector<std::int64_t> pixels(std::size_t{1} << 16);
  for (const auto value : mask.values) ++pixels[value];
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    if (pixels[i] == 0) continue;
    const auto value = static_cast<std::uint16_t>(i);
    summary.cells.push_back({value, pixels[i], colour_of(value, mask.shown)});
  }
  return summary;
}

MaskCensus census_of(std::span<const MaskSummary> masks, std::optional<std::uint16_t> ignored) {
  MaskCensus all;
  for (const auto& mask : masks) {
    std::vector<std::uint16_t> values;
    for (const auto& cell : mask.cells) {
      if (cell.value == ignored) continue;
      values.push_back(cell.value);
      all.pixels[cell.value] += cell.pixels;
    }
    if (!values.empty()) all.kinds.insert(std::move(values));
  }
  return all;
}

MaskSet::MaskSet(MaskSetOptions options)
    : options_(std::move(options)), trained_(parse_palette(options_.palette)) {}

void MaskSet::add(MaskSummary mask) { masks_.push_back(std::move(mask)); }

std::uint16_t MaskSet::translated(std::uint16_t value, const Colour& colour,
                                  Reading reading) const {
  if (value == options_.ignored) return value;
  if (reading == Reading::Colours) return luma_of(colour);
  if (reading == Reading::Numbers || colour == grey(value)) return value;
  const auto own = trained_.find(value);
  if (own != trained_.end() && own->second == colour) return value;
  const auto found =
      std::ranges::find(trained_, colour, &std::pair<const std::uint16_t, Colour>::second);
  if (found != trained_.end()) return found->first;
  throw IoError(
      fmt::format("it has pixels of the colour {}, which the palette of the training's masks lacks",
                  text_of(colour)));
}

std::uint16_t MaskSet::meaning(std::uint16_t value, const ColourTable& shown) const {
  return translated(value, colour_of(value, shown), reading_);
}

bool MaskSet::agrees_with_training() const {
  return std::ranges::all_of(masks_, [&](const MaskSummary& mask) {
    return mask.table == MaskSummary::kGreys ||
           std::ranges::all_of(mask.cells, [&](const MaskCell& cell) {
             const auto known = trained_.find(cell.value);
             return cell.value == options_.ignored ||
                    (known != trained_.end() && known->second == cell.colour);
           });
  });
}

bool MaskSet::have_classes(Reading reading) const {
  const LabelMap map(options_.labels, options_.classes);
  return std::ranges::all_of(masks_, [&](const MaskSummary& mask) {
    return mask.table == MaskSummary::kGreys ||
           std::ranges::all_of(mask.cells, [&](const MaskCell& cell) {
             const auto value = translated(cell.value, cell.colour, reading);
             return value == options_.ignored || map.class_of(value, mask.full_scale) >= 0;
           });
  });
}

void MaskSet::require_background() const {
  auto conflict = background_conflict_of(masks_);
  if (conflict.empty() && !trained_.empty()) {
    std::vector<MaskSummary> coloured = {{.file = "the masks of the training", .cells = {}}};
    for (const auto& [value, colour] : trained_)
      coloured.front().cells.push_back({value, 0, colour});
    std::ranges::copy_if(masks_, std::back_inserter(coloured),
                         [](const auto& mask) { return mask.table != MaskSummary::kGreys; });
    conflict = background_conflict_of(coloured);
  }
  if (conflict.empty()) return;
  throw IoError(fmt::format(
      "the masks do not agree on their background: {}; save all with the same palette", conflict));
}

MaskSet::Reading MaskSet::choose() {
  if (options_.labels == kInstances) {
    require_background();
    return Reading::Numbers;
  }
  if (!trained_.empty()) return agrees_with_training() ? Reading::Numbers : Reading::Trained;
  const auto conflict = conflict_of(masks_, options_.ignored);
  if (!conflict.empty()) {
    note_ = fmt::format("masks are read by the colours that viewers show: {}", conflict);
    return Reading::Colours;
  }
  if (options_.labels.empty() || have_classes(Reading::Numbers) ||
      !have_classes(Reading::Colours)) {
    return Reading::Numbers;
  }
  note_ = fmt::format("masks are read by the colours that viewers show: the labels are {}",
                      options_.labels);
  return Reading::Colours;
}

void MaskSet::require_distinct_lumas() const {
  if (options_.labels == kAboveHalf || options_.labels == kBelowHalf) return;
  std::map<std::uint16_t, Seen> by_luma;
  for (const auto& mask : masks_) {
    for (const auto& cell : mask.cells) {
      if (cell.value == options_.ignored) continue;
      const auto luma = luma_of(cell.colour);
      const auto& first = by_luma.try_emplace(luma, Seen{luma, cell.colour, &mask}).first->second;
      if (first.colour == cell.colour) continue;
      throw IoError(fmt::format(
          "{}: both are the grey value {}; save all masks with the same palette, or in grey with a "
          "value for each class",
          two_meanings(first, {luma, cell.colour, &mask}), luma));
    }
  }
}

void MaskSet::decide() {
  reading_ = choose();
  if (reading_ == Reading::Numbers) return;
  if (reading_ == Reading::Colours) require_distinct_lumas();
  for (auto& mask : masks_) {
    std::map<std::uint16_t, MaskCell> cells;
    try {
      for (const auto& cell : mask.cells) {
        const auto value = translated(cell.value, cell.colour, reading_);
        cells.try_emplace(value, MaskCell{value, 0, cell.colour}).first->second.pixels +=
            cell.pixels;
      }
    } catch (const IoError& error) {
      throw IoError(fmt::format("\"{}\": {}", mask.file, error.what()));
    }
    mask.cells.clear();
    for (const auto& [value, cell] : cells) mask.cells.push_back(cell);
  }
}

std::string MaskSet::palette() const {
  if (reading_ == Reading::Colours) return {};
  if (!options_.palette.empty()) return options_.palette;
  std::map<std::uint16_t, Colour> colours;
  for (const auto& mask : masks_) {
    if (mask.table == MaskSummary::kGreys || mask.table == MaskSummary::kLumas) continue;
    for (const auto& cell : mask.cells) {
      if (options_.labels == kInstances && cell.value != 0) continue;
      if (std::ranges::max(cell.colour) > 255) return {};
      colours.emplace(cell.value, cell.colour);
    }
  }
  if (colours.size() > kMostPaletteEntries) return {};
  std::vector<std::string> parts;
  for (const auto& [value, colour] : colours)
    parts.push_back(fmt::format("{}={:02x}{:02x}{:02x}", value, colour[0], colour[1], colour[2]));
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace triptych::segmentation
