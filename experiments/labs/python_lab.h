// Labs with a grader in Python: NAME.json has the texts and questions, NAME.py the tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experiments/labs/lab.h"
#include "experiments/labs/lab_texts.h"

namespace triptych::labs {

/// The lab of graders/NAME.json and graders/NAME.py among `files`, which `owner` keeps, or the
/// program if it is null. Throws InvalidArgument when a part is missing or wrong.
Lab python_lab(std::span<const LabText> files, const std::string& name,
               std::shared_ptr<const void> owner = nullptr);

/// The labs of `files` with graders/NAME.json, by number. `owner` as above.
std::vector<Lab> labs_of(std::span<const LabText> files,
                         const std::shared_ptr<const void>& owner = nullptr);

/// The labs of a folder with graders/NAME.json, graders/NAME.py and handouts/NAME/, by number.
/// Throws IoError and InvalidArgument, which contain the file.
std::vector<Lab> labs_in(const std::filesystem::path& folder);

}  // namespace triptych::labs
