// The text of inline PTX: instructions, as a library executes them (backends/cuda/plain/ptx.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::kernels {

/// Instructions in words, or the reason why there are none.
struct PtxWords {
  std::vector<std::int64_t> words;
  std::size_t instructions = 0;
  std::string refusal;
};

/// `text`: of an `asm`, with operands as "$0", "$1". `numbers`: the values of those that are
/// constants. Operands have the slots of their numbers.
PtxWords read_ptx(std::string_view text, std::span<const std::optional<std::int64_t>> numbers);

}  // namespace triptych::kernels
