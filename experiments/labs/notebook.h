// A lab's handout as a notebook for Jupyter: its text, each command in a cell of its own, cells for
// predictions and answers, at the end the check.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "experiments/page/json.h"

namespace triptych::labs {

/// The notebook (nbformat 4.5) of lab `number`. Blocks of `handout`, which is Markdown, that begin
/// with ```sh hold commands. `answers` is the text of answers.json. Behind the section
/// that first names `triptych lab predict`, cells write the predictions and commit them.
page::Json notebook(int number, std::string_view handout, std::string_view answers);

}  // namespace triptych::labs
