// Steps that the lanes of a warp do together: shuffles and votes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

enum class Source { Up, Down, Butterfly, Index };

/// Each lane reads a of another (PTX ISA, "shfl.sync"): `c` holds the clamp in its low bits, the
/// mask of the segment in bits 8 and on. A lane that does not take part has nothing to read.
template <Source kSource>
void shuffle(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<std::uint32_t>(step.at[0]);
  const auto* a = warp.lanes<std::uint32_t>(step.at[1]);
  const auto* b = warp.lanes<std::uint32_t>(step.at[2]);
  const auto* c = warp.lanes<std::uint32_t>(step.at[3]);
  std::uint32_t results[kLanes];
  std::uint32_t found = 0;
  for_lanes(mask, [&](int i) {
    const auto lane = static_cast<std::uint32_t>(i);
    const auto by = b[i] & 0x1F, clamp = c[i] & 0x1F, segment = c[i] >> 8 & 0x1F;
    const auto last = (lane & segment) | (clamp & ~segment);
    const auto first = lane & segment;
    auto from = lane;
    bool inside = true;
    if constexpr (kSource == Source::Up) {
      inside = lane >= by && lane - by >= last;
      from = lane - by;
    } else {
      from = kSource == Source::Down        ? lane + by
             : kSource == Source::Butterfly ? lane ^ by
                                            : first | (by & ~segment);
      inside = from <= last;
    }
    if (!inside) from = lane;
    if ((mask >> from & 1) == 0) throw Fault("a lane reads from one that does not take part");
    results[i] = a[from];
    found |= static_cast<std::uint32_t>(inside) << i;
  });
  for_lanes(mask, [&](int i) { d[i] = results[i]; });
  if (step.list_size != 0) {
    warp.set_predicate(warp.block().launch().program.list[step.list], mask, found);
  }
}

void decode_shuffle(Decoder& decoder) {
  if (!decoder.take("sync") || decoder.take_type() != Type::U32) decoder.unknown();
  auto& step = decoder.step();
  const bool pair = decoder.terms() == 6;
  const std::size_t first = pair ? 2 : 1;
  if (pair) decoder.append(decoder.predicate_target(1));
  step.at = {decoder.target(0, 4), decoder.source(first, 4), decoder.source(first + 1, 4),
             decoder.source(first + 2, 4), decoder.source(first + 3, 4)};
  step.gathers = Gathers::Members;
  decoder.finish(decoder.take("up")     ? shuffle<Source::Up>
                 : decoder.take("down") ? shuffle<Source::Down>
                 : decoder.take("bfly") ? shuffle<Source::Butterfly>
                 : decoder.take("idx")  ? shuffle<Source::Index>
                                        : nullptr);
}

void ballot(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<std::uint32_t>(step.at[0]);
  const auto votes = warp.predicate(step.at[1]) & mask;
  for_lanes(mask, [=](int i) { d[i] = votes; });
}

template <bool kAll>
void vote(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto votes = warp.predicate(step.at[1]) & mask;
  const bool result = kAll ? votes == mask : votes != 0;
  warp.set_predicate(step.at[0], mask, result ? ~0U : 0U);
}

void decode_vote(Decoder& decoder) {
  if (!decoder.take("sync")) decoder.unknown();
  auto& step = decoder.step();
  step.gathers = Gathers::Members;
  step.at[1] = decoder.predicate(decoder.term(1));
  step.at[4] = decoder.source(2, 4);
  const auto type = decoder.take_type();
  if (type == Type::U32 && decoder.take("ballot")) {
    step.at[0] = decoder.target(0, 4);
    return decoder.finish(ballot);
  }
  step.at[0] = decoder.predicate_target(0);
  decoder.finish(decoder.take("all") ? vote<true> : decoder.take("any") ? vote<false> : nullptr);
}

void active_lanes(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<std::uint32_t>(step.at[0]);
  for_lanes(mask, [=](int i) { d[i] = mask; });
}

void decode_active(Decoder& decoder) {
  if (decoder.take_type() != Type::U32) decoder.unknown();
  decoder.step().at[0] = decoder.target(0, 4);
  decoder.finish(active_lanes);
}

}  // namespace

std::span<const Family> warp_family() {
  static constexpr Family kFamily[] = {
      {"shfl", decode_shuffle}, {"vote", decode_vote}, {"activemask", decode_active}};
  return kFamily;
}

}  // namespace triptych::ptx
