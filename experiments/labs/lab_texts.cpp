// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/lab_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"

namespace triptych::labs {
namespace {

constexpr LabText kTexts[] = {
#include "lab_texts.inc"
};

}  // namespace

std::span<const LabText> lab_texts() { return kTexts; }

std::string_view text_in(std::span<const LabText> texts, std::string_view path) {
  const auto text = std::ranges::find(texts, path, &LabText::path);
  if (text == texts.end()) throw InvalidArgument(fmt::format("there is no \"{}\"", path));
  return text->content;
}

}  // namespace triptych::labs
