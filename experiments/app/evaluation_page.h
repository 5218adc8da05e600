// Scores of images on pages of training runs: tables and pictures of an evaluation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/page/page.h"

namespace triptych::app {

/// A column of a table, and the member of the report that it shows.
struct Column {
  std::string_view key;
  const char* name;
  const char* unit;
};

/// The members of `object` that the columns show.
std::vector<page::Cell> cells_of(const page::JsonView& object, std::span<const Column> columns);

/// An empty table with the columns `first` and `columns`.
page::Table table_of(std::string id, std::string caption, std::vector<std::string> first,
                     std::span<const Column> columns);

void add_row(page::Table& table, std::vector<page::Cell> first,
             const std::vector<page::Cell>& rest);

/// The images of an evaluation on a page.
struct ScoredImages {
  std::string id;    ///< begins the ids of the tables
  std::string name;  ///< in captions: "the validation images"
};

/// Scores of all images together, confusion, calibration, and scores of each image.
void write_scores(page::Page& page, const page::JsonView& evaluation, const ScoredImages& of);

/// Pictures with the Dice of their images, the lowest first. `pictures` are PNG files in base64 by
/// the name of the image. Pictures without a score in `evaluation` are left out.
void write_pictures(page::Page& page, const page::JsonView& evaluation, const ScoredImages& of,
                    const std::map<std::string, std::string>& pictures);

}  // namespace triptych::app
