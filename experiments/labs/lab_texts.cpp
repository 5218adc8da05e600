// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/lab_texts.h"

#include <algorithm>

#include "core/base/error.h"

namespace triptych::labs {
namespace {

constexpr LabText kTexts[] = {
#include "lab_texts.inc"
};

}  // namespace

std::span<const LabText> lab_texts() { return kTexts; }

std::string_view lab_text(std::string_view path) {
  const auto text = std::ranges::find(kTexts, path, &LabText::path);
  TRIPTYCH_ASSERT(text != std::end(kTexts));
  return text->content;
}

}  // namespace triptych::labs
