// Scores of images on pages of training runs: tables and pictures of an evaluation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "experiments/page/page.h"

namespace triptych::app {

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
