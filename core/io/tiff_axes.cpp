// SPDX-License-Identifier: Apache-2.0
#include "core/io/tiff_axes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include "core/base/error.h"

namespace triptych::internal {
namespace {

constexpr std::int64_t kMaxAxis = 1 << 20;

/// Lengths of the axes channel, slice and frame, and the order in which directories run, the
/// fastest first.
struct Axes {
  std::array<std::int64_t, 3> lengths = {1, 1, 1};
  std::array<std::size_t, 3> order = {0, 1, 2};

  std::int64_t directories() const { return lengths[0] * lengths[1] * lengths[2]; }
};

std::int64_t axis_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || value < 1 || value > kMaxAxis) {
    throw IoError(fmt::format("the description of its axes has \"{:.20}\" for a length", text));
  }
  return value;
}

/// The value of `key` in ImageJ's lines "key=value".
std::optional<std::string_view> imagej_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
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

/// The value of attribute `key` of the XML element whose text follows its name.
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

/// The text of the first element `name` from `from` on, without its name; empty: there is none.
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

TiffSections sections_of(const Axes& axes) {
  const auto [channels, slices, frames] = axes.lengths;
  std::array<std::int64_t, 3> steps = {};
  std::int64_t step = 1;
  for (const auto axis : axes.order) {
    steps[axis] = step;
    step *= axes.lengths[axis];
  }
  TiffSections sections;
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      auto& section = sections.emplace_back();
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        section.push_back(channel * steps[0] + slice * steps[1] + frame * steps[2]);
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
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
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

}  // namespace

std::string description_for(std::string_view old, const PictureForm& form, std::int64_t pages) {
  if (is_ome(old)) return ome_for(old, form, pages);
  if (old.starts_with("{\"shape\"")) return {};  // tifffile's, of the other picture's axes
  return old.starts_with("ImageJ=") ? imagej_for(old, pages) : std::string(old);
}

std::int64_t imagej_images(std::string_view description) {
  return description.starts_with("ImageJ=") ? imagej_length(description, "images") : 0;
}

TiffSections tiff_sections(std::string_view description, std::int64_t directories,
                           std::int64_t samples) {
  Axes axes;
  axes.lengths = {1, directories, 1};
  const auto pixels = element(description, "Pixels");
  const bool ome = is_ome(description);
  if (ome) {
    axes = ome_axes(pixels, samples);
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
  return sections_of(axes);
}

}  // namespace triptych::internal
