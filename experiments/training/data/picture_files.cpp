// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/picture_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/folder.h"
#include "core/base/list_text.h"
#include "experiments/training/data/unicode_form.h"

namespace triptych::segmentation {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamed = 5;
constexpr std::string_view kName = "{name}";
constexpr std::size_t kSectionDigits = 3;

/// Throws IoError for a name that could steer the terminal which shows it.
void require_harmless(const fs::path& folder, const std::string& name) {
  if (!has_control_characters(name)) return;
  throw IoError(fmt::format("\"{}/{}\": its name has control characters; rename it",
                            folder.string(), shown(name)));
}

/// "skipped in FOLDER, because WHY: a, b and 3 more".
std::string skipped_text(const fs::path& folder, std::string_view why,
                         const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto named = std::span(names).first(std::min(names.size(), kNamed));
  const auto more = names.size() - named.size();
  return fmt::format("skipped in \"{}\", because {}: {}{}", folder.string(), why,
                     fmt::join(named, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

bool holds_pictures(const fs::path& folder) {
  std::error_code ignored;
  return std::ranges::any_of(names_in(folder, ignored), [](const std::string& name) {
    return !name.starts_with('.') && has_picture_name(name);
  });
}

/// Throws IoError for two files of one stem.
void require_distinct(const std::vector<fs::path>& images) {
  const auto twice = std::ranges::adjacent_find(images, {}, &fs::path::stem);
  if (twice == images.end()) return;
  throw IoError(fmt::format("\"{}\" and \"{}\" have the same name; rename one", twice->string(),
                            std::next(twice)->string()));
}

fs::path stem_of(const fs::path& path) { return path.stem(); }

/// Pictures of a folder by stem, listed once. None for no folder.
class Folder {
 public:
  explicit Folder(const fs::path& folder, const fs::path& expected = {}) : path_(folder) {
    if (folder.empty()) return;
    auto found = list_pictures(folder, expected);
    skipped_ = std::move(found.skipped);
    paths_ = std::move(found.images);
    for (const auto& image : paths_) images_.emplace(image.stem().string(), image);
  }

  const fs::path& path() const { return path_; }
  const std::string& skipped() const { return skipped_; }
  const std::vector<fs::path>& paths() const { return paths_; }
  const std::map<std::string, fs::path>& images() const { return images_; }
  std::optional<fs::path> of(const std::string& stem) const {
    const auto found = images_.find(stem);
    if (found == images_.end()) return std::nullopt;
    return found->second;
  }

 private:
  fs::path path_;
  std::string skipped_;
  std::vector<fs::path> paths_;
  std::map<std::string, fs::path> images_;
};

/// Names of masks: the text before and after the image's stem.
struct MaskPattern {
  std::string before;
  std::string after;
  bool whole = false;  ///< with the extension

  explicit MaskPattern(const std::string& text) {
    const auto at = text.find(kName);
    const bool once = at != std::string::npos && text.find(kName, at + 1) == std::string::npos;
    if (!text.empty() && (!once || text.find('/') != std::string::npos)) {
      throw InvalidArgument(fmt::format(
          "names of masks are a pattern as {{name}}_mask.tif, with {{name}} once and no folder; "
          "got \"{}\"",
          text));
    }
    if (text.empty()) return;
    before = text.substr(0, at);
    after = text.substr(at + kName.size());
    whole = has_picture_name(fs::path("x" + after));
  }

  bool trivial() const { return before.empty() && after.empty(); }
  std::string stem_of(const std::string& image) const {
    const auto name = before + image + after;
    return whole ? fs::path(name).stem().string() : name;
  }
  fs::path file_of(const Folder& folder, const std::string& image) const {
    if (folder.path().empty()) return {};
    if (!whole) return stem_file_of(folder, image);
    auto path = folder.path() / (before + image + after);
    std::error_code ignored;
    return fs::exists(path, ignored) ? path : fs::path();
  }
  /// The second ending of NAME.ome.tif need not be that of the mask, and the reverse.
  fs::path stem_file_of(const Folder& folder, const std::string& image) const {
    constexpr std::string_view ome = ".ome";
    auto plain = image;
    if (plain.ends_with(ome)) plain.resize(plain.size() - ome.size());
    for (const auto& stem : {stem_of(image), stem_of(plain), stem_of(plain) + std::string(ome)}) {
      if (const auto found = folder.of(stem)) return *found;
    }
    return {};
  }
  /// Masks that lie among the images themselves.
  std::vector<std::string> stems_in(const Folder& folder) const {
    std::vector<std::string> masks;
    for (const auto& [stem, path] : folder.images()) {
      const auto mask = stem_of(stem);
      if (mask != stem && folder.of(mask)) masks.push_back(mask);
    }
    return masks;
  }
};

/// STEM and 12 of "STEM_012".
std::optional<std::pair<std::string, std::int64_t>> section_of(const std::string& name) {
  const auto line = name.rfind('_');
  if (line == std::string::npos) return std::nullopt;
  const auto digits = name.substr(line + 1);
  if (digits.size() < kSectionDigits || digits.size() > 6 ||
      !std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return std::nullopt;
  }
  return std::pair(name.substr(0, line), std::int64_t{std::stoll(digits)});
}

/// 1 for a file that cannot be read, too: who reads it says why.
std::int64_t pages_of(const fs::path& image) {
  try {
    return PictureFile(image).pages();
  } catch (const IoError&) {
    return 1;
  }
}

class Pairing {
 public:
  Pairing(const DatasetOptions& options, const Folder& images, const Folder& masks)
      : options_(options), images_(images), masks_(masks), pattern_(options.mask_pattern) {}

  std::vector<ListEntry> files() const {
    std::vector<std::string> masks;
    std::error_code ignored;
    if (!pattern_.trivial() && fs::equivalent(images_.path(), masks_.path(), ignored)) {
      masks = pattern_.stems_in(images_);
    }
    std::vector<ListEntry> entries;
    for (const auto& [stem, path] : images_.images()) {
      if (std::ranges::find(masks, stem) == masks.end()) entries.push_back({stem, "", ""});
    }
    return entries;
  }

  /// Refuses two rows for one picture or section, of any splits: it would train and validate.
  void require_once(const std::vector<ListEntry>& entries) const {
    constexpr std::int64_t whole = -1;
    std::map<std::string, std::map<std::int64_t, const ListEntry*>> rows;
    for (const auto& entry : entries) {
      const auto [stem, section] = meant_by(entry);
      auto& others = rows[stem];
      const auto same = others.find(section.value_or(whole));
      const auto other = others.empty() || same != others.end() ? same
                         : !section                             ? others.begin()
                                                                : others.find(whole);
      if (other != others.end()) refuse_twice(*other->second, entry);
      others.emplace(section.value_or(whole), &entry);
    }
  }

  void add(const ListEntry& entry) {
    const auto [stem, section] = meant_by(entry);
    const auto image = images_.of(stem);
    if (!image) refuse_missing(entry);
    const auto mask =
        entry.mask.empty() ? pattern_.file_of(masks_, stem) : masks_.path() / entry.mask;
    const auto pages = pages_of(*image);
    if (section && *section >= pages) {
      throw IoError(fmt::format("\"{}\" has {}, so none is \"{}\"", image->string(),
                                counted(pages, "section"), entry.name));
    }
    const auto first = section.value_or(0), last = section ? first + 1 : pages;
    for (auto page = first; page < last; ++page) {
      auto label = pages == 1 ? stem : section_name(stem, page, pages);
      pairs_.push_back({std::move(label), entry.split, *image, mask, page, pages});
    }
  }

  std::vector<PicturePair> take() { return std::move(pairs_); }

 private:
  /// Lists may name files. A stem may have a point, too.
  std::string stem_of_entry(const std::string& name) const {
    return has_picture_name(name) && !images_.of(name) ? fs::path(name).stem().string() : name;
  }
  /// Stem of the image that a row names, and which section of it when it names but one.
  std::pair<std::string, std::optional<std::int64_t>> meant_by(const ListEntry& entry) const {
    auto name = stem_of_entry(entry.name);
    const auto section = images_.of(name) ? std::nullopt : section_of(name);
    if (!section || !images_.of(section->first)) return {std::move(name), std::nullopt};
    return *section;
  }
  [[noreturn]] void refuse_missing(const ListEntry& entry) const {
    const auto note = other_form_note(entry.name, images_.path());
    throw IoError(fmt::format(
        "\"{}\" has no picture \"{}\", which line {} of the list \"{}\" names{}{}{}",
        images_.path().string(), entry.name, entry.line, options_.list.string(),
        note.empty() ? "" : "; ", note,
        entry.line == 1 ? "; were it a header, it would name the column of the images id, image, "
                          "name or file"
                        : ""));
  }
  [[noreturn]] void refuse_twice(const ListEntry& first, const ListEntry& second) const {
    throw IoError(fmt::format(
        "\"{}\": line {} (\"{}\") and line {} (\"{}\") name the same picture or section; leave out "
        "one of them",
        options_.list.string(), first.line, first.name, second.line, second.name));
  }

  const DatasetOptions& options_;
  const Folder& images_;
  const Folder& masks_;
  MaskPattern pattern_;
  std::vector<PicturePair> pairs_;
};

}  // namespace

std::string section_name(const std::string& stem, std::int64_t page, std::int64_t pages) {
  if (pages == 1) return stem;
  const auto digits = std::max(kSectionDigits, std::to_string(pages - 1).size());
  return fmt::format("{}_{:0{}}", stem, page, digits);
}

bool has_png_name(const fs::path& path) {
  auto extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return extension == ".png";
}

void require_distinct_sections(const std::vector<fs::path>& pictures) {
  for (const auto& picture : pictures) {
    const auto name = picture.stem().string();
    const auto section = section_of(name);
    if (!section) continue;
    const auto stack = std::ranges::lower_bound(pictures, fs::path(section->first), {}, &stem_of);
    if (stack == pictures.end() || stack->stem() != section->first) continue;
    const auto pages = pages_of(*stack);
    if (section->second >= pages || section_name(section->first, section->second, pages) != name)
      continue;
    throw IoError(fmt::format("\"{}\" and a section of \"{}\" have the same name, {}; rename one",
                              picture.string(), stack->string(), name));
  }
}

PictureFolder list_pictures(const fs::path& folder, const fs::path& expected) {
  PictureFolder found;
  std::vector<std::string> others, folders;
  std::error_code error;
  for (const auto& name : names_in(folder, error)) {
    require_harmless(folder, name);
    const auto path = folder / name;
    std::error_code ignored;
    if (name.starts_with('.')) continue;
    if (fs::is_directory(path, ignored)) {
      if (!fs::equivalent(path, expected, ignored) && holds_pictures(path)) folders.push_back(name);
    } else if (has_picture_name(path)) {
      found.images.push_back(path);
    } else {
      others.push_back(name);
    }
  }
  if (error) {
    throw IoError(fmt::format("cannot list \"{}\": {}", folder.string(), error.message()));
  }
  std::ranges::sort(found.images, {}, &stem_of);
  require_distinct(found.images);
  found.skipped = skipped_text(folder, "no .png, .tif or .jpg", others);
  const auto unseen =
      skipped_text(folder, "the pictures in folders below are not looked for", folders);
  found.skipped += (found.skipped.empty() || unseen.empty() ? "" : "; ") + unseen;
  if (found.images.empty()) {
    throw IoError(fmt::format("no images in \"{}\": it holds no .png, .tif or .jpg{}{}",
                              folder.string(), found.skipped.empty() ? "" : "; ", found.skipped));
  }
  return found;
}

std::vector<PicturePair> pair_pictures(const DatasetOptions& options, std::string& note) {
  const Folder images(options.images, options.masks), masks(options.masks);
  require_distinct_sections(images.paths());
  Pairing pairing(options, images, masks);
  auto entries = options.list.empty() ? pairing.files() : read_list(options.list);
  if (options.list.empty()) note = images.skipped();
  if (!options.list.empty()) pairing.require_once(entries);
  if (!options.splits.empty()) {
    std::erase_if(entries, [&](const ListEntry& entry) {
      return std::ranges::count(options.splits, entry.split) == 0;
    });
  }
  if (entries.empty()) {
    throw IoError(fmt::format("no images in \"{}\"{}", options.images.string(),
                              options.list.empty() ? "" : ": the list selects none"));
  }
  for (const auto& entry : entries) pairing.add(entry);
  return pairing.take();
}

std::string other_form_note(const fs::path& image, const fs::path& folder) {
  const auto stem = image.stem().string();
  std::error_code ignored;
  for (const auto& name : names_in(folder, ignored)) {
    const auto other = fs::path(name).stem().string();
    if (name.starts_with('.') || !has_picture_name(name) || !differ_in_unicode_form(stem, other))
      continue;
    return fmt::format(
        "the name of \"{}\" there looks the same, but stores its accented letters in another "
        "Unicode form (NFC or NFD); rename one of the two",
        name);
  }
  return {};
}

PictureFile& OpenPicture::of(const fs::path& path) {
  if (file_ == nullptr || file_->path() != path) {
    file_ = std::make_unique<PictureFile>(path, palette_);
  }
  return *file_;
}

}  // namespace triptych::segmentation
