// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <system_error>

#include "core/base/error.h"
#include "core/base/list_text.h"

namespace triptych::segmentation {
namespace {

constexpr std::size_t kListed = 8;
constexpr std::int64_t kMostClasses = 32;  ///< more values count as numbers of objects

/// 1 is one output that tells two classes apart.
std::int64_t told_apart(std::int64_t classes) { return std::max<std::int64_t>(2, classes); }

bool is_word(std::string_view text) {
  return text == kAboveHalf || text == kBelowHalf || text == kInstances;
}

std::uint16_t parse_value(const std::string& text) {
  std::uint16_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && rest == end) return value;
  throw InvalidArgument(fmt::format(
      "labels \"{}\" are neither values of masks from 0 to 65535, as 0,128,255, nor {}, "
      "{} or {}",
      text, kAboveHalf, kBelowHalf, kInstances));
}

/// "0 (91.2 %), 128 (7.1 %), … of 197 values".
std::string list_of(const ValueCounts& counts) {
  const auto all = std::accumulate(counts.begin(), counts.end(), 0.0, [](double sum, auto& entry) {
    return sum + static_cast<double>(entry.second);
  });
  std::vector<std::string> parts;
  for (const auto& [value, count] : counts) {
    if (parts.size() == kListed) break;
    parts.push_back(fmt::format("{} ({:.3g} %)", value, 100 * static_cast<double>(count) / all));
  }
  const auto more = counts.size() > kListed;
  return fmt::format("{}{}", fmt::join(parts, ", "),
                     more ? fmt::format(", ... of {} values", counts.size()) : "");
}

/// "files of 0 and 1 lie beside files of 0 and 255" in that case.
std::string two_scales(const MaskCensus& masks) {
  const auto low = masks.pixels.begin()->first, high = masks.pixels.rbegin()->first;
  if (masks.pixels.size() != 3 || low != 0 || !masks.pixels.contains(1)) return {};
  const bool together = std::ranges::any_of(masks.kinds, [high](const auto& values) {
    return std::ranges::count(values, 1) > 0 && values.back() == high;
  });
  return together ? "" : fmt::format("files of 0 and 1 lie beside files of 0 and {}", high);
}

/// Possible answers about masks with ambiguous values.
std::string ways_out(const MaskCensus& masks, std::int64_t classes) {
  const auto& counts = masks.pixels;
  const auto wanted = told_apart(classes);
  std::vector<int> values;
  for (const auto& [value, pixels] : counts) values.push_back(value);
  std::vector<std::string> ways;
  const auto mixed = wanted == 2 ? two_scales(masks) : std::string();
  if (mixed.empty() && std::ssize(values) == wanted + 1) {
    ways.push_back(fmt::format("the option ignore-label {} if pixels of that value do not count",
                               values.back()));
  }
  if (std::ssize(values) < wanted) {
    ways.emplace_back("the option labels with the value of each class in turn, as 0,128,255");
  } else if (std::ssize(values) <= kMostClasses) {
    ways.push_back(fmt::format("the option classes {} and the option labels {} if each is a class",
                               values.size(), fmt::join(values, ",")));
  }
  if (wanted == 2) {
    ways.push_back(fmt::format(
        "the option labels {} if everything but 0 is class 1: numbered objects", kInstances));
    ways.push_back(fmt::format(
        "the option labels {} if class 1 is above half of a file's full scale", kAboveHalf));
  }
  if (ways.empty()) return fmt::format("are there {} classes, and are these the masks?", wanted);
  return fmt::format("{}{}",
                     mixed.empty() ? "give " : mixed + ": bring them to one scale; or give ",
                     fmt::join(ways, "; or "));
}

std::uint16_t to_sample(float value) { return static_cast<std::uint16_t>(value); }

[[noreturn]] void refuse(const MaskCensus& masks, std::int64_t classes) {
  throw InvalidArgument(
      fmt::format("the masks hold {}, which does not say what the {} classes are; {}",
                  list_of(masks.pixels), told_apart(classes), ways_out(masks, classes)));
}

std::string derive_two(const MaskCensus& masks, bool invert) {
  const auto& counts = masks.pixels;
  const auto low = counts.begin()->first, high = counts.rbegin()->first;
  if (counts.size() == 1) {
    throw InvalidArgument(fmt::format(
        "every pixel of every mask is {}, so there is nothing to tell apart; are these the masks?",
        low));
  }
  if (counts.size() > 2) refuse(masks, 2);
  return invert ? fmt::format("{},{}", high, low) : fmt::format("{},{}", low, high);
}

/// Colours by their luma. Throws IoError for two colours of one luma.
ColourTable colours_of(const Picture& colours, const std::vector<std::uint16_t>& values) {
  ColourTable table(std::size_t{std::ranges::max(values)} + 1);
  std::vector<bool> known(table.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* pixel = colours.samples.data() + 3 * i;
    auto& entry = table[values[i]];
    if (!known[values[i]]) std::transform(pixel, pixel + 3, entry.begin(), to_sample);
    known[values[i]] = true;
    if (std::equal(entry.begin(), entry.end(), pixel)) continue;
    throw IoError(fmt::format(
        "its colours ({}) and ({}) are both the grey value {}; save it in grey or with a palette, "
        "a value for each class",
        fmt::join(entry, ", "), fmt::join(pixel, pixel + 3, ", "), values[i]));
  }
  return table;
}

}  // namespace

MaskValues mask_values(const Picture& mask, std::string_view labels) {
  constexpr int most = 65535;
  MaskValues raw;
  raw.full_scale =
      mask.form.floating ? most : static_cast<int>(std::min<double>(most, mask.form.full_scale()));
  const auto colours = mask.form.colours;
  if (!colours && mask.form.channels != 1) {
    throw IoError(fmt::format("it has {} channels, a mask has one", mask.form.channels));
  }
  const auto of_colours = colours ? luma(mask) : std::vector<float>();
  const auto& values = colours ? of_colours : mask.samples;
  raw.values.resize(values.size());
  bool sane = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool within = values[i] >= 0 && values[i] <= most;
    const auto whole = within ? static_cast<int>(values[i]) : 0;
    sane = sane & within & (static_cast<float>(whole) == values[i]);
    raw.values[i] = static_cast<std::uint16_t>(whole);
  }
  const bool halved = labels == kAboveHalf || labels == kBelowHalf;
  if (!colours) raw.shown = mask.shown;
  if (sane && colours && !halved) {
    raw.shown = colours_of(mask, raw.values);
    raw.lumas_shown = true;
  }
  if (sane) return raw;
  const auto bad = std::ranges::find_if(values, [](float value) {
    return !(value >= 0 && value <= most && value == std::floor(value));
  });
  throw IoError(
      fmt::format("it has a pixel of value {}; masks hold whole numbers from 0 to {}", *bad, most));
}

LabelMap::LabelMap(std::string_view text, std::int64_t classes) : text_(text) {
  if (is_word(text)) {
    if (told_apart(classes) > 2)
      throw InvalidArgument(fmt::format("labels {} tell two classes apart, not {}", text, classes));
    return;
  }
  for (const auto& part : split_list(text_)) values_.push_back(parse_value(part));
  if (std::set(values_.begin(), values_.end()).size() != values_.size())
    throw InvalidArgument(fmt::format("labels {} name a value twice", text));
  if (std::ssize(values_) != told_apart(classes)) {
    throw InvalidArgument(fmt::format("labels {} are {} values; {} classes need {}", text,
                                      values_.size(), told_apart(classes), told_apart(classes)));
  }
  classes_.assign(std::size_t{1} << 16, -1);
  for (std::size_t i = 0; i < values_.size(); ++i)
    classes_[values_[i]] = static_cast<std::int16_t>(i);
}

int LabelMap::class_of(std::uint16_t value, int full_scale) const {
  if (values_.empty()) {
    if (text_ == kInstances) return value != 0 ? 1 : 0;
    return (value > full_scale / 2) == (text_ == kAboveHalf) ? 1 : 0;
  }
  return classes_[value];
}

void LabelMap::require_apart(std::optional<std::uint16_t> ignored) const {
  const auto found = ignored ? std::ranges::find(values_, *ignored) : values_.end();
  if (found == values_.end()) return;
  throw InvalidArgument(fmt::format(
      "the option labels {} makes {} class {}, and the option ignore-label {} says that its pixels "
      "do not count; leave out one of the two",
      text_, *ignored, found - values_.begin(), *ignored));
}

std::string LabelMap::describe(const LabelShares& shares,
                               std::span<const std::string> names) const {
  const auto& pixels = shares.pixels;
  const auto all =
      static_cast<double>(std::accumulate(pixels.begin(), pixels.end(), shares.ignored));
  const auto percent = [all](std::int64_t count) {
    return 100 * static_cast<double>(count) / std::max(all, 1.0);
  };
  const auto meaning = [&](std::size_t label) {
    if (!values_.empty()) return std::to_string(values_[label]);
    if (text_ == kInstances) return std::string(label == 0 ? "0" : "everything else");
    return std::string((label == 1) == (text_ == kAboveHalf) ? "above half" : "up to half");
  };
  std::vector<std::string> parts;
  for (std::size_t label = 0; label < pixels.size(); ++label) {
    parts.push_back(fmt::format("{} is class {}{} ({:.3g} %{})", meaning(label), label,
                                names.empty() ? "" : ", " + names[label], percent(pixels[label]),
                                label == 0 ? " of the pixels" : ""));
  }
  if (shares.ignored > 0) parts.push_back(fmt::format("{:.3g} % ignored", percent(shares.ignored)));
  for (std::size_t label = 0; label < pixels.size(); ++label) {
    if (pixels[label] == 0) parts.push_back(fmt::format("no pixel is of class {}", label));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<double> LabelShares::of_counted() const {
  const auto all = std::accumulate(pixels.begin(), pixels.end(), std::int64_t{0});
  std::vector<double> shares;
  for (const auto count : pixels)
    shares.push_back(all > 0 ? static_cast<double>(count) / static_cast<double>(all) : 0);
  return shares;
}

namespace {

/// How many times the odds of one share are those of the other, at least 1.
double odds_ratio(double one, double other) {
  const auto odds = [](double share) {
    constexpr double least = 0.001;  // a few pixels could have made more or less of it
    const auto bounded = std::clamp(share, least, 1 - least);
    return bounded / (1 - bounded);
  };
  const auto ratio = odds(one) / odds(other);
  return std::max(ratio, 1 / ratio);
}

}  // namespace

std::string share_warning(const std::vector<double>& found, const std::vector<double>& trained) {
  constexpr double far = 5;
  if (found.size() != trained.size()) return {};
  for (std::size_t label = 1; label < found.size(); ++label) {
    if (odds_ratio(found[label], trained[label]) <= far) continue;
    const bool exchanged = found.size() == 2 && odds_ratio(found[0], trained[1]) <= far;
    return fmt::format(
        "class {} has {:.3g} % of the pixels of these masks, and had {:.3g} % in training; {}",
        label, 100 * found[label], 100 * trained[label],
        exchanged ? "if these masks mark the other class, give the option invert"
                  : "see whether their values mean the same, and give the option labels otherwise");
  }
  return {};
}

std::string exchanged_labels(std::string_view labels) {
  if (labels == kAboveHalf) return std::string(kBelowHalf);
  if (labels == kBelowHalf) return std::string(kAboveHalf);
  const auto values = split_list(std::string(labels));
  if (values.size() == 2) return fmt::format("{},{}", values[1], values[0]);
  throw InvalidArgument(fmt::format(
      "the option invert exchanges two classes, and the labels are {}; give the option labels",
      labels));
}

std::vector<std::string> parse_class_names(std::string_view text, std::int64_t classes) {
  std::vector<std::string> names;
  for (auto& name : split_list(std::string(text))) {
    const auto first = name.find_first_not_of(' ');
    if (first == std::string::npos) throw InvalidArgument("a name of a class is empty");
    names.push_back(name.substr(first, name.find_last_not_of(' ') + 1 - first));
  }
  if (std::ssize(names) != told_apart(classes)) {
    throw InvalidArgument(fmt::format("{} classes need {} names, got {}: {}", told_apart(classes),
                                      told_apart(classes), names.size(), text));
  }
  if (std::set(names.begin(), names.end()).size() != names.size()) {
    throw InvalidArgument(fmt::format("two classes have one name: {}", text));
  }
  return names;
}

std::string derive_labels(const MaskCensus& masks, std::int64_t classes, bool invert) {
  if (told_apart(classes) == 2) return derive_two(masks, invert);
  const auto& counts = masks.pixels;
  std::vector<std::int64_t> values(static_cast<std::size_t>(classes));
  if (counts.rbegin()->first < classes) {
    std::iota(values.begin(), values.end(), 0);
  } else if (std::ssize(counts) == classes) {
    std::ranges::transform(counts, values.begin(), [](const auto& entry) { return entry.first; });
  } else {
    refuse(masks, classes);
  }
  return fmt::format("{}", fmt::join(values, ","));
}

}  // namespace triptych::segmentation
