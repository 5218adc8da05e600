// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/state_home.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/ops/collectives.h"

namespace triptych::parallel {
namespace {

/// A tensor consists of this many runs, and each run has `length` bytes of every part.
struct Cut {
  std::size_t runs = 1;
  std::size_t length = 0;
};

Cut cut_of(const TensorSpec& whole, int parts, std::int64_t split) {
  const auto size = dtype_size(whole.dtype);
  if (split < 0)
    return {1, static_cast<std::size_t>(shard_elements(whole.shape.elements(), parts)) * size};
  const auto runs = static_cast<std::size_t>(whole.shape.elements_between(0, split));
  return {runs, whole.bytes() / runs / static_cast<std::size_t>(parts)};
}

/// Calls use(whole's first byte, part's first byte, bytes) for each piece of a part.
template <class Use>
void for_each_piece(const Cut& cut, std::size_t whole_bytes, int part, int parts, const Use& use) {
  for (std::size_t run = 0; run < cut.runs; ++run) {
    const auto first =
        (run * static_cast<std::size_t>(parts) + static_cast<std::size_t>(part)) * cut.length;
    if (first < whole_bytes)
      use(first, run * cut.length, std::min(cut.length, whole_bytes - first));
  }
}

}  // namespace

Tensor part_of_tensor(const Tensor& whole, int part, int parts, std::int64_t split) {
  Tensor own(TensorSpec{whole.dtype(), part_shape("state", whole.shape(), parts, split)});
  const auto from = whole.bytes();
  for_each_piece(cut_of(whole.spec(), parts, split), from.size(), part, parts,
                 [&](std::size_t first, std::size_t at, std::size_t count) {
                   std::ranges::copy(from.subspan(first, count),
                                     own.bytes().begin() + static_cast<std::ptrdiff_t>(at));
                 });
  return own;
}

Tensor join_parts(std::span<const std::byte> bytes, const TensorSpec& whole, int parts,
                  std::int64_t split) {
  Tensor tensor(whole);
  const TensorSpec own_spec{whole.dtype, part_shape("state", whole.shape, parts, split)};
  const auto needed = own_spec.bytes() * static_cast<std::size_t>(parts);
  if (bytes.size() != needed) {
    throw InvalidArgument(fmt::format("{} parts of {} are {} bytes, got {}", parts,
                                      to_string(whole), needed, bytes.size()));
  }
  const auto cut = cut_of(whole, parts, split);
  for (int part = 0; part < parts; ++part) {
    const auto own = bytes.subspan(static_cast<std::size_t>(part) * cut.runs * cut.length);
    for_each_piece(cut, whole.bytes(), part, parts,
                   [&](std::size_t first, std::size_t at, std::size_t count) {
                     std::ranges::copy(own.subspan(at, count),
                                       tensor.bytes().begin() + static_cast<std::ptrdiff_t>(first));
                   });
  }
  return tensor;
}

}  // namespace triptych::parallel
