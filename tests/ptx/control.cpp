// Branches, ends and barriers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

void branch(Warp& warp, const Step& step, std::uint32_t mask) {
  warp.branch(mask, static_cast<std::size_t>(step.number));
}

void decode_branch(Decoder& decoder) {
  static_cast<void>(decoder.take("uni"));
  decoder.step().number = static_cast<std::int64_t>(decoder.label(0));
  decoder.finish(branch);
}

void leave(Warp& warp, const Step&, std::uint32_t mask) { warp.exit(mask); }

void decode_return(Decoder& decoder) {
  static_cast<void>(decoder.take("uni"));
  decoder.finish(leave);
}

void trap(Warp&, const Step&, std::uint32_t) { throw Fault("a trap"); }

void decode_trap(Decoder& decoder) { decoder.finish(trap); }

void wait_at_barrier(Warp& warp, const Step& step, std::uint32_t) {
  warp.wait_at_barrier(static_cast<int>(step.number));
}

/// For all threads of the block. Those of a warp come together.
void decode_barrier(Decoder& decoder) {
  const bool cta = decoder.take("cta");
  static_cast<void>(cta);
  if (!decoder.take("sync")) decoder.unknown();
  auto& step = decoder.step();
  if (decoder.take("warp")) {
    step.at[4] = decoder.source(0, 4);
    step.gathers = Gathers::Members;
    return decoder.finish([](Warp&, const Step&, std::uint32_t) {});
  }
  static_cast<void>(decoder.take("aligned"));
  if (decoder.terms() != 1) decoder.unknown();
  step.number = static_cast<std::int64_t>(decoder.number(0));
  step.gathers = Gathers::All;
  decoder.finish(wait_at_barrier);
}

void nothing(Warp&, const Step&, std::uint32_t) {}

/// Steps happen one after another here: there is nothing to order.
void decode_fence(Decoder& decoder) {
  for (const auto word : {"mbarrier_init", "release", "cluster", "proxy", "async", "shared::cta",
                          "global", "acq_rel", "sc", "cta", "gpu", "sys", "gl"}) {
    static_cast<void>(decoder.take(word));
  }
  decoder.finish(nothing);
}

}  // namespace

std::span<const Family> control_family() {
  static constexpr Family kFamily[] = {{"bra", decode_branch},  {"ret", decode_return},
                                       {"exit", decode_return}, {"trap", decode_trap},
                                       {"bar", decode_barrier}, {"barrier", decode_barrier},
                                       {"fence", decode_fence}, {"membar", decode_fence}};
  return kFamily;
}

}  // namespace triptych::ptx
