// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/transport.h"

#include <fmt/core.h>

#include "core/base/error.h"

namespace triptych::parallel {

bool same_collective(const Envelope& a, const Envelope& b) {
  return a.sequence == b.sequence && a.fingerprint == b.fingerprint;
}

PeerFailure lost_message(int peer, int receiver, std::uint64_t number, const std::string& how) {
  return {peer, Cause::Lost,
          fmt::format("message {} to rank {} was lost on the way; {}", number, receiver, how),
          Seconds(0)};
}

PeerFailure stalled(int peer, Seconds waited, std::string_view doing) {
  return {peer, Cause::Stalled,
          doing.empty() ? "" : fmt::format("when last heard of it was {}", doing), waited};
}

std::optional<PeerFailure> mismatch(int peer, const Envelope& theirs, const Envelope& ours) {
  if (same_collective(theirs, ours)) return std::nullopt;
  if (theirs.sequence & kMessageBit)
    return PeerFailure{peer, Cause::Mismatch, "it sent a message of another kind or size",
                       Seconds(0)};
  const char* how = theirs.sequence == ours.sequence ? "with another algorithm, dtype, size or root"
                                                     : "not this one";
  return PeerFailure{
      peer, Cause::Mismatch,
      fmt::format("it called a collective #{}, {}", theirs.sequence & 0xFFFFFFFFU, how),
      Seconds(0)};
}

bool Transport::shared_all_reduce(const Envelope&, std::span<const int>, std::span<std::byte>,
                                  DType) {
  return false;
}

void Transport::library_all_reduce(const Envelope&, std::span<std::byte>, DType) {
  throw UnsupportedError(fmt::format(
      "{} have no library's all-reduce; choose ring, direct, halving-doubling or tree", name()));
}

}  // namespace triptych::parallel
