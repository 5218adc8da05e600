// `triptych data describe`: facts about a folder of images and masks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <span>

#include "core/base/console.h"
#include "core/base/list_text.h"
#include "core/io/image.h"
#include "core/io/output_ledger.h"
#include "experiments/app/commands.h"
#include "experiments/app/message.h"
#include "experiments/app/option_rows.h"
#include "experiments/app/output.h"
#include "experiments/app/output_files.h"
#include "experiments/app/saved_run.h"
#include "experiments/page/json.h"
#include "experiments/training/data/description.h"
#include "experiments/training/data/picture_files.h"

namespace triptych::app {
namespace {

namespace fs = std::filesystem;
using page::Json;
using segmentation::DatasetDescription;

constexpr std::size_t kNamed = 8;
constexpr std::int64_t kOnSheet = 24;

struct DataOptions {
  std::string folder;
  std::string images;
  std::string masks;
  std::string mask_pattern;
  std::string list;
  std::string out;
  std::int64_t ignore_label = -1;
};

/// The given folders. Default: images/ and masks/ below the folder, or the folder itself.
segmentation::DatasetOptions dataset_options(const DataOptions& options) {
  const fs::path folder = options.folder;
  segmentation::DatasetOptions result;
  std::error_code ignored;
  const bool parted = fs::is_directory(folder / "images", ignored);
  result.images =
      !options.images.empty() ? fs::path(options.images) : (parted ? folder / "images" : folder);
  result.masks = !options.masks.empty()         ? fs::path(options.masks)
                 : parted                       ? folder / "masks"
                 : options.mask_pattern.empty() ? fs::path()
                                                : folder;
  if (options.masks.empty() && !fs::is_directory(result.masks, ignored)) result.masks.clear();
  result.mask_pattern = options.mask_pattern;
  result.list = options.list;
  if (options.ignore_label >= 0) {
    result.ignored = static_cast<std::uint16_t>(options.ignore_label);
  }
  return result;
}

Json dataset_json(const DatasetDescription& said) {
  Json labels = Json::array(), duplicates = Json::array();
  for (const auto& [value, pixels] : said.labels) {
    labels.push_back({{"value", value}, {"pixels", pixels}});
  }
  for (const auto& both : said.duplicates) {
    duplicates.push_back({{"first", both.first},
                          {"second", both.second},
                          {"first_split", both.first_split},
                          {"second_split", both.second_split}});
  }
  Json suggestions = Json::array();
  for (const auto& text : said.suggestions) suggestions.push_back(with_dashes(text));
  return {{"images", said.images},
          {"masks", said.masks},
          {"forms", said.forms},
          {"splits", said.splits},
          {"values",
           {{"least", said.values.least},
            {"greatest", said.values.greatest},
            {"mean", said.values.mean},
            {"deviation", said.values.deviation}}},
          {"labels", std::move(labels)},
          {"ignored", said.ignored},
          {"without_mask", said.without_mask},
          {"without_image", said.without_image},
          {"duplicates", std::move(duplicates)},
          {"damaged", said.damaged},
          {"suggestions", std::move(suggestions)}};
}

void print_names(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const auto named = std::span(names).first(std::min(names.size(), kNamed));
  const auto more = names.size() - named.size();
  print_text("{} ({}): {}{}\n", title, names.size(), fmt::join(named, ", "),
             more == 0 ? "" : fmt::format(" and {} more", more));
}

void print_labels(const DatasetDescription& said) {
  double all = static_cast<double>(said.ignored);
  for (const auto& [value, pixels] : said.labels) all += static_cast<double>(pixels);
  std::vector<std::string> shares;
  const auto share = [all](auto value, std::int64_t pixels) {
    return fmt::format("{} ({:.3g} %)", value, 100 * static_cast<double>(pixels) / all);
  };
  for (const auto& [value, pixels] : said.labels) {
    if (shares.size() == 2 * kNamed) {
      shares.push_back(fmt::format("... of {} values", said.labels.size()));
      break;
    }
    shares.push_back(share(value, pixels));
  }
  if (said.ignored > 0) shares.push_back(share("to be ignored", said.ignored));
  if (!shares.empty()) print_text("values of masks: {}\n", fmt::join(shares, ", "));
}

void print(const DatasetDescription& said) {
  print_text("{}, {}\n", counted(said.images, "image"), counted(said.masks, "mask"));
  for (const auto& [form, count] : said.forms) print_text("  {} of {}\n", count, form);
  for (const auto& [split, count] : said.splits) print_text("  {} in split {}\n", count, split);
  print_text("values of images: {:.6g} to {:.6g}, mean {:.4g}, deviation {:.4g}\n",
             said.values.least, said.values.greatest, said.values.mean, said.values.deviation);
  print_labels(said);
  print_names("images without a mask", said.without_mask);
  print_names("masks without an image", said.without_image);
  std::vector<std::string> twins;
  for (const auto& both : said.duplicates) {
    const bool apart = both.first_split != both.second_split;
    twins.push_back(
        fmt::format("{} = {}{}", both.first, both.second,
                    apart ? fmt::format(" ({} and {})", both.first_split, both.second_split) : ""));
  }
  print_names("the same image twice", twins);
  for (const auto& problem : said.damaged) print_text("damaged: {}\n", problem);
  for (const auto& text : said.suggestions) print_text("to do: {}\n", with_dashes(text));
}

/// Throws InvalidArgument unless a PNG file can be written there.
void require_sheet(const std::filesystem::path& out) {
  if (!segmentation::has_png_name(out)) {
    throw InvalidArgument(
        fmt::format("--out \"{}\": the contact sheet is a PNG; name it FILE.png", out.string()));
  }
  require_writable(out);
}

void describe(const DataOptions& options, Context& context) {
  const auto wanted = dataset_options(options);
  if (!options.out.empty()) require_sheet(options.out);
  const auto said = segmentation::describe_dataset(wanted);
  say_note(with_dashes(said.note));
  if (!options.out.empty()) {
    write_own_file(options.out, encode_png(segmentation::contact_sheet(wanted, kOnSheet)));
  }
  if (context.json) {
    print_document("data describe", Json::array({dataset_json(said)}));
  } else {
    print(said);
    if (!options.out.empty()) print_text("contact sheet: {}\n", options.out);
  }
  if (!said.damaged.empty()) context.exit_code = kUsage;
}

}  // namespace

void describe_data(Command& data, Context& context) {
  data.require_subcommand();
  auto options = std::make_shared<DataOptions>();
  auto command = data.add_subcommand(
      "describe", "Report sizes, values, labels, splits, duplicates and problems of a data set");
  command.add_option("folder", options->folder, "folder with images/ and masks/, or only images")
      .required();
  command.add_option("--images", options->images, "folder of images, instead of FOLDER/images");
  command.add_option("--masks", options->masks, "folder of masks, instead of FOLDER/masks");
  add_run_option(command, "--mask-pattern", options->mask_pattern);
  command.add_option("--list", options->list, "CSV of the images to use and their splits");
  add_run_option(command, "--ignore-label", options->ignore_label,
                 "mask value of pixels that do not count (-1: none)");
  command.add_option("--out", options->out, "contact sheet of images and masks (PNG)")
      .output_file();
  command.add_flag("--json", context.json, "print JSON");
  command.callback([options, &context] { describe(*options, context); });
}

}  // namespace triptych::app
