// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/old_spellings.h"

#include <fmt/core.h>

namespace triptych::app {
namespace {

struct OldSpelling {
  std::string_view command;
  std::string_view old;  ///< empty: an argument, which follows the new spelling
  std::string_view present;
};

constexpr OldSpelling kOldSpellings[] = {
    {"run", "--weights", "triptych run RUN"},
    {"evaluate", "--weights", "triptych evaluate RUN"},
    {"quantize", "--weights", "triptych quantize RUN"},
    {"run", "--checkpoint", "triptych run RUN"},
    {"evaluate", "--checkpoint", "triptych evaluate RUN"},
    {"run", "--output-dir", "--out"},
    {"export", "--onnx", "--out FILE.onnx"},
    {"export", "--safetensors", "--out FILE.safetensors"},
    {"lab start", "", "--out"},
};

}  // namespace

std::string new_spelling(std::string_view command, std::string_view word) {
  const bool option = word.starts_with('-');
  for (const auto& [of, old, present] : kOldSpellings) {
    if (of != command) continue;
    if (option && old == word) return std::string(present);
    if (!option && old.empty()) return fmt::format("{} {}", present, word);
  }
  return {};
}

}  // namespace triptych::app
