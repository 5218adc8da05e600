// The files of handouts/, graders/ and benches/, which are part of the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace triptych::labs {

struct LabText {
  std::string_view path;  ///< "handouts/1-array/README.md"
  std::string_view content;
};
std::span<const LabText> lab_texts();

/// The text at `path`. Throws InvalidArgument when `texts` have none.
std::string_view text_in(std::span<const LabText> texts, std::string_view path);

}  // namespace triptych::labs
