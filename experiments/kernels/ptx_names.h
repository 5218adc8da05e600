// Names of PTX instructions: the operation, its type and its modifiers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cuda/plain/ptx.h"

namespace triptych::kernels {

using WordList = std::vector<std::string_view>;

struct PtxType {
  std::int64_t bytes = 4;
  cuda::plain::PtxClass kind = cuda::plain::PtxClass::Unsigned;
  bool is_pair = false;  ///< two elements of 16 bits
};

/// An instruction with its operands in groups, as braces have them.
struct PtxStatement {
  cuda::plain::PtxOperation operation = cuda::plain::PtxOperation::Move;
  PtxType type;
  std::int64_t detail = 0;
  cuda::plain::PtxOperand guard;
  std::vector<std::vector<cuda::plain::PtxOperand>> groups;

  bool has_groups(std::initializer_list<std::size_t> sizes) const {
    return std::ranges::equal(groups, sizes, {}, &std::vector<cuda::plain::PtxOperand>::size);
  }
};

/// "12", "-1", "0x1F", and the bits of floats ("0f3F800000").
std::optional<std::int64_t> ptx_integer(std::string_view text);
/// "u32", "f16x2".
std::optional<PtxType> ptx_type(std::string_view text);
/// Gives a statement with its operands the operation of this name. False: it is not emulated.
bool name_ptx(PtxStatement& of, std::string_view name);

}  // namespace triptych::kernels
