// SPDX-License-Identifier: Apache-2.0
#include <csv.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/csv_text.h"
#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/io/input_file.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {
namespace {

constexpr std::int64_t kMaxListBytes = std::int64_t{64} << 20;
constexpr std::string_view kSeparators = ",;\t";
constexpr std::array<std::string_view, 4> kImageColumns = {"id", "image", "name", "file"};
constexpr std::array<std::string_view, 3> kSplitColumns = {"split", "set", "subset"};
constexpr std::array<std::string_view, 1> kMaskColumns = {"mask"};

struct Row {
  std::int64_t line = 1;
  std::vector<std::string> fields;
};

/// Calls of libcsv. Nothing is thrown through it.
struct Rows {
  std::vector<Row> rows;
  Row current;
  bool out_of_memory = false;

  static void end_field(void* text, std::size_t size, void* self) {
    auto& rows = *static_cast<Rows*>(self);
    try {
      rows.current.fields.emplace_back(text_of_csv({static_cast<const char*>(text), size}));
    } catch (const std::bad_alloc&) {
      rows.out_of_memory = true;
    }
  }
  /// Called at each end of a line, of an empty one, too.
  static void end_row(int end, void* self) {
    auto& rows = *static_cast<Rows*>(self);
    const auto line = rows.current.line + (end == '\n' ? 1 : 0);
    try {
      if (!rows.current.fields.empty()) rows.rows.push_back(std::move(rows.current));
    } catch (const std::bad_alloc&) {
      rows.out_of_memory = true;
    }
    rows.current = {line, {}};
  }
};

/// The separator that the first line has most of outside of quotes. A comma where it has none.
char separator_of(std::string_view text) {
  std::array<std::int64_t, kSeparators.size()> counts = {};
  bool quoted = false;
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  for (const char letter : text) {
    if (letter == '"') quoted = !quoted;
    if (quoted) continue;
    if (letter == '\r' || letter == '\n') break;
    const auto place = kSeparators.find(letter);
    if (place != std::string_view::npos) ++counts[place];
  }
  return kSeparators[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())];
}

std::vector<Row> parse_rows(std::string_view text) {
  csv_parser parser;
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0) throw std::bad_alloc();
  csv_set_delim(&parser, static_cast<unsigned char>(separator_of(text)));
  Rows rows;
  const auto read =
      csv_parse(&parser, text.data(), text.size(), Rows::end_field, Rows::end_row, &rows);
  const bool whole =
      read == text.size() && csv_fini(&parser, Rows::end_field, Rows::end_row, &rows) == 0;
  const auto reason = csv_error(&parser);
  csv_free(&parser);
  if (rows.out_of_memory || reason == CSV_ENOMEM) throw std::bad_alloc();
  if (!whole) {
    throw IoError(
        fmt::format("line {} has a quote that does not enclose a field", rows.current.line));
  }
  return std::move(rows.rows);
}

/// The position of the first of `names` among the fields, ignoring case.
std::optional<std::size_t> column(const Row& header, std::span<const std::string_view> names) {
  for (const auto name : names) {
    for (std::size_t i = 0; i < header.fields.size(); ++i) {
      if (std::ranges::equal(header.fields[i], name, [](unsigned char letter, char other) {
            return std::tolower(letter) == other;
          })) {
        return i;
      }
    }
  }
  return std::nullopt;
}

void require_plain(const std::string& name) {
  const bool plain = !name.empty() && name.front() != '.' &&
                     name.find_first_of(std::string_view("/\\\"\0", 4)) == std::string::npos;
  if (!plain) throw IoError(fmt::format("\"{:.100}\" is not a plain file stem", name));
}

/// Refuses a first line of several fields that names no column of images.
void require_images(const Row& header, std::optional<std::size_t> image) {
  if (image || header.fields.size() == 1) return;
  auto found = mapped<std::string>(
      header.fields, [](const auto& field) { return fmt::format("\"{}\"", shown(field)); });
  throw IoError(fmt::format(
      "line {} has the columns {}; a list of several columns begins with their names, and that of "
      "the images is one of {} (that of their splits one of {}, of their masks {})",
      header.line, fmt::join(found, ", "), fmt::join(kImageColumns, ", "),
      fmt::join(kSplitColumns, ", "), fmt::join(kMaskColumns, ", ")));
}

std::vector<ListEntry> parse_list(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw IoError("it is UTF-16; save it as CSV in UTF-8");
  const auto rows = parse_rows(without_byte_order_mark(text));
  if (rows.empty()) return {};
  const auto image = column(rows.front(), kImageColumns);
  require_images(rows.front(), image);
  const auto split = image ? column(rows.front(), kSplitColumns) : std::nullopt;
  const auto mask = image ? column(rows.front(), kMaskColumns) : std::nullopt;
  const auto width = image ? rows.front().fields.size() : 1;
  std::vector<ListEntry> entries;
  for (const auto& row : std::span(rows).subspan(image ? 1 : 0)) {
    if (row.fields.size() != width) {
      throw IoError(fmt::format(
          "line {} has {}, expected {}{}", row.line, counted(std::ssize(row.fields), "field"),
          width,
          image ? ""
                : ": a list of several columns begins with their names, without any line before"));
    }
    ListEntry entry{row.fields[image.value_or(0)], split ? row.fields[*split] : "",
                    mask ? row.fields[*mask] : "", row.line};
    require_plain(entry.name);
    if (!entry.mask.empty()) require_plain(entry.mask);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::vector<ListEntry> read_list(const std::filesystem::path& path) {
  const InputFile file(path, kMaxListBytes);
  const auto text = file.read_text(0, file.size());
  return file.named([&] { return parse_list(text); });
}

}  // namespace triptych::segmentation
