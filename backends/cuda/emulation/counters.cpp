// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/counters.h"

#include <algorithm>
#include <bit>
#include <span>

namespace triptych::cuda::emulation {
namespace {

constexpr unsigned kSectorBytes = 32, kBankBytes = 4, kBanks = 32;

/// Passes for the lanes of `mask`: the most distinct words that one bank has to give.
unsigned bank_passes(const Request& request, std::uint32_t mask) {
  std::array<std::uint64_t, 32 * 4> words;
  std::size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const auto first = request.addresses[static_cast<unsigned>(std::countr_zero(mask))];
    const auto last = first + request.bytes - 1;
    for (auto word = first / kBankBytes; word <= last / kBankBytes && count < words.size();
         ++word) {
      words[count++] = word;
    }
  }
  std::sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
  std::array<unsigned, kBanks> by_bank{};
  unsigned most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && words[i] == words[i - 1]) continue;
    most = std::max(most, ++by_bank[words[i] % kBanks]);
  }
  return most;
}

}  // namespace

unsigned count_sectors(const Request& request) {
  std::array<std::uint64_t, 32 * 2> sectors;
  std::size_t count = 0;
  for (std::uint32_t mask = request.mask; mask != 0; mask &= mask - 1) {
    const auto first = request.addresses[static_cast<unsigned>(std::countr_zero(mask))];
    const auto begin = first / kSectorBytes, end = (first + request.bytes - 1) / kSectorBytes;
    if (count == 0 || sectors[count - 1] != begin) sectors[count++] = begin;
    if (end != begin) sectors[count++] = end;
  }
  const auto used = std::span(sectors).first(count);
  std::ranges::sort(used);
  return static_cast<unsigned>(std::unique(used.begin(), used.end()) - used.begin());
}

unsigned count_wavefronts(const Request& request) {
  const unsigned groups = std::max(1U, request.bytes / kBankBytes);
  const unsigned lanes = 32 / groups;
  unsigned passes = 0;
  for (unsigned group = 0; group < groups; ++group) {
    const auto lanes_mask = lanes == 32 ? ~0U : ((1U << lanes) - 1) << (group * lanes);
    passes += bank_passes(request, request.mask & lanes_mask);
  }
  return passes;
}

SiteCounters& SiteCounters::operator+=(const SiteCounters& other) {
  requests += other.requests;
  lanes += other.lanes;
  useful_bytes += other.useful_bytes;
  sectors += other.sectors;
  wavefronts += other.wavefronts;
  return *this;
}

KernelCounters& KernelCounters::operator+=(const KernelCounters& other) {
  launches += other.launches;
  blocks += other.blocks;
  threads += other.threads;
  barriers += other.barriers;
  warp_operations += other.warp_operations;
  matrix_products += other.matrix_products;
  bulk_bytes += other.bulk_bytes;
  for (const auto& [site, counters] : other.sites) sites[site] += counters;
  return *this;
}

SiteCounters KernelCounters::total(Space space, Access access) const {
  SiteCounters sum;
  for (const auto& [site, counters] : sites) {
    if (site.space == space && site.access == access) sum += counters;
  }
  return sum;
}

}  // namespace triptych::cuda::emulation
