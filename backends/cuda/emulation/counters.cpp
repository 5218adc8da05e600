// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/counters.h"

#include <algorithm>
#include <bit>
#include <span>

namespace triptych::cuda::emulation {
namespace {

constexpr unsigned kLanes = 32, kSectorBytes = 32, kBankBytes = 4, kBanks = 32;

/// Patterns of a request's addresses.
enum class Shape : std::uint8_t {
  Any,
  Consecutive,  ///< all lanes, each directly behind the one before, at multiples of the bytes
  Same,         ///< all lanes, at one address
};
using enum Shape;

Shape shape_of(const Request& request) {
  const auto first = request.addresses[0];
  if (request.mask != ~0U || first % request.bytes != 0) return Any;
  std::uint64_t from_same = 0, from_consecutive = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto from_first = request.addresses[lane] - first;
    from_same |= from_first;
    from_consecutive |= from_first ^ (std::uint64_t{lane} * request.bytes);
  }
  return from_same == 0 ? Same : from_consecutive == 0 ? Consecutive : Any;
}

/// Passes for the lanes of `mask`: the most words that one bank must deliver, each once for all
/// lanes that ask for it, but once more for each atomic operation.
unsigned bank_passes(const Request& request, std::uint32_t mask, bool atomic) {
  std::array<std::uint64_t, 32 * 4> words;
  std::size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const auto first = request.addresses[static_cast<unsigned>(std::countr_zero(mask))];
    const auto last = first + request.bytes - 1;
    for (auto word = first / kBankBytes; word <= last / kBankBytes && count < words.size();
         ++word) {
      if (atomic || count == 0 || words[count - 1] != word) words[count++] = word;
    }
  }
  const auto used = std::span(words).first(count);
  if (!std::ranges::is_sorted(used)) std::ranges::sort(used);
  std::array<unsigned, kBanks> by_bank{};
  unsigned most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!atomic && i > 0 && words[i] == words[i - 1]) continue;
    most = std::max(most, ++by_bank[words[i] % kBanks]);
  }
  return most;
}

}  // namespace

unsigned count_distinct_bytes(const Request& request) {
  const auto shape = shape_of(request);
  if (shape != Any) return request.bytes * (shape == Same ? 1 : kLanes);
  std::array<std::uint64_t, 32> addresses;
  std::size_t count = 0;
  for (std::uint32_t mask = request.mask; mask != 0; mask &= mask - 1) {
    const auto address = request.addresses[static_cast<unsigned>(std::countr_zero(mask))];
    if (count == 0 || addresses[count - 1] != address) addresses[count++] = address;
  }
  // All lanes ask for as many bytes, at a multiple of them: two overlap in all bytes or in none.
  const auto used = std::span(addresses).first(count);
  if (!std::ranges::is_sorted(used)) std::ranges::sort(used);
  const auto different = std::unique(used.begin(), used.end()) - used.begin();
  return static_cast<unsigned>(different) * request.bytes;
}

unsigned count_sectors(const Request& request) {
  std::array<std::uint64_t, 32 * 2> sectors;
  return list_sectors(request, sectors);
}

unsigned list_sectors(const Request& request, std::array<std::uint64_t, 64>& sectors) {
  unsigned count = 0;
  if (const auto shape = shape_of(request); shape != Any) {
    const auto bytes = request.bytes * (shape == Same ? 1 : kLanes);
    const auto last = (request.addresses[0] + bytes - 1) / kSectorBytes;
    for (auto at = request.addresses[0] / kSectorBytes; at <= last; ++at) sectors[count++] = at;
    return count;
  }
  for (std::uint32_t mask = request.mask; mask != 0; mask &= mask - 1) {
    const auto first = request.addresses[static_cast<unsigned>(std::countr_zero(mask))];
    const auto begin = first / kSectorBytes, end = (first + request.bytes - 1) / kSectorBytes;
    if (count == 0 || sectors[count - 1] != begin) sectors[count++] = begin;
    if (end != begin) sectors[count++] = end;
  }
  const auto used = std::span(sectors).first(count);
  if (!std::ranges::is_sorted(used)) std::ranges::sort(used);
  return static_cast<unsigned>(std::unique(used.begin(), used.end()) - used.begin());
}

namespace {

/// The lanes' addresses in order.
std::span<const std::uint64_t> sorted_addresses(const Request& request,
                                                std::array<std::uint64_t, 32>& addresses) {
  std::size_t count = 0;
  for (std::uint32_t mask = request.mask; mask != 0; mask &= mask - 1) {
    addresses[count++] = request.addresses[static_cast<unsigned>(std::countr_zero(mask))];
  }
  const auto used = std::span(addresses).first(count);
  if (!std::ranges::is_sorted(used)) std::ranges::sort(used);
  return used;
}

}  // namespace

unsigned count_addresses(const Request& request) {
  const auto shape = shape_of(request);
  if (shape != Any) return shape == Same ? 1 : kLanes;
  std::array<std::uint64_t, 32> addresses;
  const auto sorted = sorted_addresses(request, addresses);
  unsigned different = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    different += i == 0 || sorted[i] != sorted[i - 1] ? 1 : 0;
  }
  return different;
}

unsigned count_contention(const Request& request) {
  const auto shape = shape_of(request);
  if (shape != Any) return shape == Same ? kLanes : 1;
  std::array<std::uint64_t, 32> addresses;
  const auto sorted = sorted_addresses(request, addresses);
  unsigned most = 0, same = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    same = i > 0 && sorted[i] == sorted[i - 1] ? same + 1 : 1;
    most = std::max(most, same);
  }
  return most;
}

unsigned count_wavefronts(const Request& request, Access access) {
  const unsigned groups = std::max(1U, request.bytes / kBankBytes);
  const bool is_atomic = access == Access::Atomic;
  const auto shape = shape_of(request);
  if (shape == Consecutive && (!is_atomic || request.bytes >= kBankBytes)) return groups;
  if (shape == Same && !is_atomic) return groups;
  const unsigned lanes = 32 / groups;
  unsigned passes = 0;
  for (unsigned group = 0; group < groups; ++group) {
    const auto lanes_mask = lanes == 32 ? ~0U : ((1U << lanes) - 1) << (group * lanes);
    passes += bank_passes(request, request.mask & lanes_mask, is_atomic);
  }
  return passes;
}

}  // namespace triptych::cuda::emulation
