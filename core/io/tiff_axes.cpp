// SPDX-License-Identifier: Apache-2.0
#include "core/io/tiff_axes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/io/strict_json.h"

namespace triptych::internal {
namespace {

constexpr std::int64_t kMaxAxis = 1 << 20;

/// Lengths of the axes channel, slice and frame, and the order of the directories, fastest axis
/// first.
struct Axes {
  std::array<std::int64_t, 3> lengths = {1, 1, 1};
  std::array<std::size_t, 3> order = {0, 1, 2};

  std::int64_t directories() const { return lengths[0] * lengths[1] * lengths[2]; }
  /// Distance of neighbours along each axis, in directories.
  std::array<std::int64_t, 3> steps() const {
    std::array<std::int64_t, 3> result = {};
    std::int64_t step = 1;
    for (const auto axis : order) {
      result[axis] = step;
      step *= lengths[axis];
    }
    return result;
  }
};

std::int64_t number_of(std::string_view text, std::int64_t least) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && rest == text.data() + text.size() && value >= least &&
      value <= kMaxAxis) {
    return value;
  }
  throw IoError(fmt::format("the description of its axes has \"{:.20}\" for a {}", text,
                            least == 1 ? "length" : "number"));
}

std::int64_t axis_of(std::string_view text) { return number_of(text, 1); }

/// The value of `key` in ImageJ's lines "key=value".
std::optional<std::string_view> imagej_value(std::string_view text, std::string_view key) {
  for (auto line : split_lines(text)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=') {
      return line.substr(key.size() + 1);
    }
  }
  return std::nullopt;
}

std::int64_t imagej_length(std::string_view text, std::string_view key) {
  const auto value = imagej_value(text, key);
  return value ? axis_of(*value) : 1;
}

/// The value of attribute `key` of the XML element with this text after its name.
std::optional<std::string_view> attribute(std::string_view element, std::string_view key) {
  for (std::size_t at = 0; (at = element.find(key, at)) != std::string_view::npos; ++at) {
    const auto value = at + key.size() + 2;
    if (at == 0 || std::string_view(" \t\r\n").find(element[at - 1]) == std::string_view::npos)
      continue;
    if (value > element.size() || element[value - 2] != '=') continue;
    const char quote = element[value - 1];
    if (quote != '"' && quote != '\'') continue;
    const auto end = element.find(quote, value);
    if (end == std::string_view::npos) return std::nullopt;
    return element.substr(value, end - value);
  }
  return std::nullopt;
}

/// The text of the first element `name` from `from` on, without its name. Empty: there is none.
std::string_view element(std::string_view text, const std::string& name) {
  const auto begin = text.find("<" + name);
  if (begin == std::string_view::npos) return {};
  const auto body = text.substr(begin + 1 + name.size());
  return body.substr(0, body.find('>'));
}

Axes ome_axes(std::string_view pixels, std::int64_t samples) {
  Axes axes;
  const std::array<std::string_view, 3> sizes = {"SizeC", "SizeZ", "SizeT"};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (const auto value = attribute(pixels, sizes[i])) axes.lengths[i] = axis_of(*value);
  }
  if (axes.lengths[0] % samples != 0) {
    throw IoError(fmt::format("its OME description has {} channels, a directory has {}",
                              axes.lengths[0], samples));
  }
  axes.lengths[0] /= samples;
  const auto order = attribute(pixels, "DimensionOrder").value_or("XYCZT");
  const std::string_view letters = "CZT";
  std::string rest(order.substr(std::min<std::size_t>(2, order.size())));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto axis = rest.size() == 3 ? letters.find(rest[i]) : std::string_view::npos;
    if (axis == std::string_view::npos || !order.starts_with("XY") ||
        std::ranges::count(rest, rest[i]) != 1) {
      throw IoError(fmt::format("its OME description has the order \"{:.20}\"", order));
    }
    axes.order[i] = axis;
  }
  return axes;
}

/// Directories of the planes of an OME file, in the order of `axes`.
class OmePlanes {
 public:
  OmePlanes(const Axes& axes, std::span<const std::int64_t> numbers, std::int64_t samples)
      : axes_(axes), numbers_(numbers), samples_(samples) {
    places_.assign(static_cast<std::size_t>(axes.directories()), -1);
  }

  /// The elements TiffData of `text`, which follows the start of the element Pixels. Without one
  /// the directories are the planes in turn.
  std::vector<std::int64_t> read(std::string_view text) {
    constexpr std::string_view name = "<TiffData";
    text = text.substr(0, text.find("</Pixels"));
    bool any = false;
    for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name)) {
      text.remove_prefix(at + name.size());
      const auto one = text.substr(0, text.find(name));
      require_one_file(one);
      place(one.substr(0, one.find('>')));
      any = true;
    }
    if (!any) std::iota(places_.begin(), places_.end(), std::int64_t{0});
    require_all();
    return places_;
  }

 private:
  void require_one_file(std::string_view data) {
    const auto file = attribute(element(data, "UUID"), "FileName");
    if (!file) return;
    if (!file_) file_ = *file;
    if (file_ != *file) {
      throw IoError(fmt::format(
          "its OME description places planes in \"{:.60}\" and \"{:.60}\"; export it as one file",
          *file_, *file));
    }
  }

  /// The planes of one element: a number of them that follow each other, as their directories do.
  void place(std::string_view data) {
    const auto stated = [&](std::string_view key) {
      const auto value = attribute(data, key);
      return value ? std::optional(number_of(*value, 0)) : std::nullopt;
    };
    const auto first_number = stated("IFD");
    const auto steps = axes_.steps();
    const auto first = stated("FirstC").value_or(0) / samples_ * steps[0] +
                       stated("FirstZ").value_or(0) * steps[1] +
                       stated("FirstT").value_or(0) * steps[2];
    const auto all = std::ssize(numbers_) - first_number.value_or(0);
    const auto count = stated("PlaneCount").value_or(first_number ? 1 : all);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto plane = first + i;
      const auto number = first_number.value_or(0) + i;
      const auto found = std::ranges::lower_bound(numbers_, number);
      if (plane >= std::ssize(places_) || found == numbers_.end() || *found != number) {
        throw IoError(fmt::format(
            "its OME description has plane {} in directory {}, and the file has {} planes in {} "
            "directories",
            plane, number, places_.size(), numbers_.size()));
      }
      auto& place = places_[static_cast<std::size_t>(plane)];
      if (place >= 0) throw IoError(fmt::format("its OME description has plane {} twice", plane));
      place = found - numbers_.begin();
    }
  }

  void require_all() const {
    std::vector<bool> used(numbers_.size());
    for (std::size_t plane = 0; plane < places_.size(); ++plane) {
      const auto place = places_[plane];
      if (place < 0 || place >= std::ssize(numbers_) || used[static_cast<std::size_t>(place)]) {
        throw IoError(fmt::format(
            "its OME description gives plane {} no directory of its own; export it again", plane));
      }
      used[static_cast<std::size_t>(place)] = true;
    }
  }

  const Axes& axes_;
  std::span<const std::int64_t> numbers_;
  std::int64_t samples_;
  std::vector<std::int64_t> places_;
  std::optional<std::string_view> file_;
};

/// Description of an array by tifffile.
struct Shaped {
  std::vector<std::int64_t> shape;
  std::string axes;        ///< a letter for each length, or empty
  bool truncated = false;  ///< one directory stands for all
};

std::optional<Shaped> shaped_of(std::string_view description) {
  if (!description.starts_with("{\"shape\"")) return std::nullopt;
  const auto json = parse_strict<nlohmann::json>(std::string(description));
  Shaped shaped;
  try {
    for (const auto& length : json.at("shape")) shaped.shape.push_back(number_of(length.dump(), 1));
    if (json.contains("axes") && json["axes"].is_string()) shaped.axes = json["axes"];
    shaped.truncated = json.value("truncated", false);
  } catch (const nlohmann::json::exception&) {
    throw IoError("its description by tifffile cannot be read");
  }
  if (!shaped.axes.empty() && shaped.axes.size() != shaped.shape.size()) {
    throw IoError(fmt::format("its description has the axes \"{:.20}\" and {} lengths", shaped.axes,
                              shaped.shape.size()));
  }
  return shaped;
}

std::int64_t product(std::span<const std::int64_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{1},
                         [](std::int64_t a, std::int64_t b) { return checked_mul(a, b); });
}

/// Sections of an array with axes by tifffile: those before Y and X run over directories, the
/// last one the fastest, and C is the channel.
TiffSections shaped_sections(const Shaped& shaped, std::int64_t directories, std::int64_t samples) {
  TiffSections sections;
  const auto plane = shaped.axes.find('Y');
  const auto channel = shaped.axes.find('C');
  const bool stated = plane != std::string::npos && channel < plane;
  if (!stated || (samples > 1 && directories == 1)) {
    for (std::int64_t i = 0; i < directories; ++i) sections.push_back({i});
    return sections;
  }
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < plane; ++i)
    lengths.push_back(shaped.axes[i] == 'S' && samples > 1 ? 1 : shaped.shape[i]);
  if (product(lengths) != directories) {
    throw IoError(fmt::format(
        "its description by tifffile has the axes \"{:.20}\" of {} planes, but the file holds {} "
        "directories; save it as one array",
        shaped.axes, product(lengths), directories));
  }
  const auto channels = lengths[channel];
  const auto inner = product(std::span(lengths).subspan(channel + 1));
  for (std::int64_t section = 0; section < directories / channels; ++section) {
    auto& found = sections.emplace_back();
    for (std::int64_t c = 0; c < channels; ++c)
      found.push_back((section / inner * channels + c) * inner + section % inner);
  }
  return sections;
}

/// `places` has the directories of the planes in the order of `axes`.
TiffSections sections_of(const Axes& axes, std::span<const std::int64_t> places) {
  const auto [channels, slices, frames] = axes.lengths;
  const auto steps = axes.steps();
  TiffSections sections;
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      auto& section = sections.emplace_back();
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const auto plane = channel * steps[0] + slice * steps[1] + frame * steps[2];
        section.push_back(places[static_cast<std::size_t>(plane)]);
      }
    }
  }
  return sections;
}

/// ImageJ's lines without those that count pages or tell how to show them.
std::string imagej_for(std::string_view text, std::int64_t pages) {
  constexpr std::array<std::string_view, 9> dropped = {
      "images=", "channels=", "slices=", "frames=", "hyperstack=",
      "mode=",   "min=",      "max=",    "loop="};
  std::string kept;
  for (const auto line : split_lines(text)) {
    if (std::ranges::any_of(dropped, [&](auto start) { return line.starts_with(start); })) continue;
    kept += fmt::format("{}\n", line);
    if (line.starts_with("ImageJ=") && pages > 1)
      kept += fmt::format("images={0}\nchannels={0}\n", pages);
  }
  return kept;
}

/// A new description, with the sizes of pixels that the old one states.
std::string ome_for(std::string_view old, const PictureForm& form, std::int64_t pages) {
  const auto pixels = element(old, "Pixels");
  std::string sizes;
  for (const std::string key : {"PhysicalSizeX", "PhysicalSizeY", "PhysicalSizeZ"}) {
    for (const auto& name : {key, key + "Unit"}) {
      const auto value = attribute(pixels, name);
      if (value && value->find('"') == std::string_view::npos)
        sizes += fmt::format(" {}=\"{}\"", name, *value);
    }
  }
  std::string channels;
  for (std::int64_t page = 0; page < pages; ++page) {
    channels +=
        fmt::format("<Channel ID=\"Channel:0:{}\" SamplesPerPixel=\"{}\"/>", page, form.channels);
  }
  const auto type = form.floating ? "float" : form.bits == 16 ? "uint16" : "uint8";
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME "
      "xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\"><Pixels "
      "ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"{}\" SizeX=\"{}\" SizeY=\"{}\" "
      "SizeC=\"{}\" SizeZ=\"1\" SizeT=\"1\"{}>{}<TiffData/></Pixels></Image></OME>",
      type, form.width, form.height, pages * form.channels, sizes, channels);
}

bool is_ome(std::string_view description) {
  return description.find("<OME") != std::string_view::npos &&
         !element(description, "Pixels").empty();
}

/// Throws IoError for an OME description that does not say where its planes are.
void require_pixels(std::string_view description) {
  if (description.find("openmicroscopy.org/Schemas") == std::string_view::npos) return;
  if (is_ome(description)) return;
  const auto other = attribute(element(description, "BinaryOnly"), "MetadataFile");
  throw IoError(
      other ? fmt::format("its OME description lies in \"{:.60}\"; export it as one file", *other)
            : "its OME description names no element Pixels; export it again");
}

}  // namespace

std::string description_for(std::string_view old, const PictureForm& form, std::int64_t pages) {
  if (is_ome(old)) return ome_for(old, form, pages);
  if (old.starts_with("{\"shape\"")) return {};  // tifffile's, of the other picture's axes
  return old.starts_with("ImageJ=") ? imagej_for(old, pages) : std::string(old);
}

std::int64_t counted_images(std::string_view description, std::int64_t samples) {
  if (description.starts_with("ImageJ=")) return imagej_length(description, "images");
  const auto shaped = shaped_of(description);
  if (!shaped || !shaped->truncated || shaped->shape.size() < 2) return 0;
  const std::size_t of_plane = samples > 1 && shaped->shape.back() == samples ? 3 : 2;
  if (shaped->shape.size() < of_plane) return 0;
  return product(std::span(shaped->shape).first(shaped->shape.size() - of_plane));
}

TiffSections tiff_sections(std::string_view description, std::span<const std::int64_t> numbers,
                           std::int64_t samples) {
  const auto directories = std::ssize(numbers);
  require_pixels(description);
  if (const auto shaped = shaped_of(description))
    return shaped_sections(*shaped, directories, samples);
  Axes axes;
  axes.lengths = {1, directories, 1};
  const bool ome = is_ome(description);
  if (ome) {
    axes = ome_axes(element(description, "Pixels"), samples);
  } else if (description.starts_with("ImageJ=")) {
    axes.lengths = {imagej_length(description, "channels"), imagej_length(description, "slices"),
                    imagej_length(description, "frames")};
    if (samples > 1) axes.lengths[0] = 1;  // channels of a directory, not of their own
    if (axes.directories() == 1) axes.lengths[1] = directories;
  }
  if (axes.directories() != directories) {
    throw IoError(fmt::format(
        "its {} description has {} channels, {} slices and {} frames, but the file holds {} "
        "directories; export it as one file",
        ome ? "OME" : "ImageJ", axes.lengths[0], axes.lengths[1], axes.lengths[2], directories));
  }
  std::vector<std::int64_t> places(numbers.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  if (ome) {
    const auto pixels = description.substr(description.find("<Pixels"));
    places = OmePlanes(axes, numbers, samples).read(pixels.substr(pixels.find('>') + 1));
  }
  return sections_of(axes, places);
}

}  // namespace triptych::internal
