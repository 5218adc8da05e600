// Additions of compute capability 9.0: barriers that count bytes, the copy engine's boxes, products
// of a warpgroup, registers that warps give and take.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

constexpr int kRegisters = 64 * 1024;  ///< of a multiprocessor

/// f(lane, address of the barrier)
template <class F>
void for_barriers(Warp& warp, const Step& step, std::uint32_t mask, F f) {
  for_lanes(mask, [&](int i) {
    const auto address = warp.address_of(step, i);
    static_cast<void>(warp.memory(Space::Shared, address, 8, i));
    f(i, address);
  });
}

void begin_barrier(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto* counts = warp.lanes<std::uint32_t>(step.at[3]);
  for_barriers(warp, step, mask, [&](int i, std::uint64_t address) {
    if (counts[i] == 0 || counts[i] >= 1U << 20) throw Fault("a barrier for so many arrivals");
    Barrier{.expected = counts[i], .pending = counts[i]}.store(warp.block().shared(address, 8));
  });
}

void end_barrier(Warp& warp, const Step& step, std::uint32_t mask) {
  for_barriers(warp, step, mask, [&](int, std::uint64_t address) {
    auto* word = warp.block().shared(address, 8);
    static_cast<void>(Barrier::load(word));
    std::memset(word, 0, 8);
  });
}

void arrive(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto* counts = warp.lanes<std::uint32_t>(step.at[3]);
  for_barriers(warp, step, mask, [&](int i, std::uint64_t address) {
    warp.block().async().arrive(address, counts[i]);
  });
}

void expect_and_arrive(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto* bytes = warp.lanes<std::uint32_t>(step.at[3]);
  for_barriers(warp, step, mask, [&](int i, std::uint64_t address) {
    warp.block().async().expect(address, static_cast<std::int32_t>(bytes[i]));
    warp.block().async().arrive(address, 1);
  });
}

void try_wait(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto* parities = warp.lanes<std::uint32_t>(step.at[3]);
  std::uint32_t over = 0;
  for_barriers(warp, step, mask, [&](int i, std::uint64_t address) {
    const bool is_over = warp.block().async().is_over(address, (parities[i] & 1) != 0);
    over |= static_cast<std::uint32_t>(is_over) << i;
  });
  warp.set_predicate(step.at[4], mask, over);
  if (over != mask) warp.give_way();
}

void decode_barrier(Decoder& decoder) {
  auto& step = decoder.step();
  if (decoder.take_type() != Type::U64) decoder.unknown();
  if (!decoder.take("shared::cta") && !decoder.take("shared")) decoder.unknown();
  if (decoder.take("init")) {
    decoder.address(0);
    step.at[3] = decoder.source(1, 4);
    return decoder.finish(begin_barrier);
  }
  if (decoder.take("inval")) {
    decoder.address(0);
    return decoder.finish(end_barrier);
  }
  if (decoder.take("arrive")) {
    if (decoder.term(0).kind != Term::Kind::Sink) decoder.unknown();
    decoder.address(1);
    if (decoder.take("expect_tx")) {
      step.at[3] = decoder.source(2, 4);
      return decoder.finish(expect_and_arrive);
    }
    Term one;
    one.kind = Term::Kind::Number;
    one.bits = 1;
    step.at[3] = decoder.source(decoder.terms() == 3 ? decoder.term(2) : one, 4);
    return decoder.finish(arrive);
  }
  if ((!decoder.take("try_wait") && !decoder.take("test_wait")) || !decoder.take("parity")) {
    decoder.unknown();
  }
  step.at[4] = decoder.predicate_target(0);
  decoder.address(1);
  step.at[3] = decoder.source(2, 4);
  decoder.finish(try_wait);
}

/// A map lies at a multiple of 64 bytes.
TensorMap read_map(Warp& warp, std::uint64_t address, int lane) {
  std::array<std::byte, sizeof(TensorMap)> bytes;
  for (std::size_t at = 0; at < bytes.size(); at += 64) {
    std::memcpy(bytes.data() + at, warp.memory(Space::Generic, address + at, 64, lane), 64);
  }
  return std::bit_cast<TensorMap>(bytes);
}

void start_box(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto& list = warp.block().launch().program.list;
  for_lanes(mask, [&](int i) {
    const auto map = read_map(warp, warp.address_of(step, i, 1), i);
    if (map.rank != step.list_size) throw Fault("the tensor has another number of axes");
    std::array<std::int32_t, 5> at = {};
    for (std::uint32_t axis = 0; axis < step.list_size; ++axis) {
      at[axis] = static_cast<std::int32_t>(warp.lanes<std::uint32_t>(list[step.list + axis])[i]);
    }
    warp.block().async().start_box(map, at, warp.address_of(step, i), warp.address_of(step, i, 2));
  });
}

/// [target], [map, {places}], [barrier]
void decode_box_of(Decoder& decoder, std::size_t axes) {
  if (!decoder.take("shared::cluster") && !decoder.take("shared::cta")) decoder.unknown();
  if (!decoder.take("global") || !decoder.take("mbarrier::complete_tx::bytes")) decoder.unknown();
  for (std::size_t i = 0; i < 3; ++i) decoder.address(i, i);
  const auto& parts = decoder.term(1).parts;
  if (parts.size() != 2 || parts[1].parts.size() != axes || decoder.terms() != 3) decoder.unknown();
  for (const auto& part : parts[1].parts) decoder.append(decoder.source(part, 4));
  decoder.finish(start_box);
}

/// One value that all lanes have.
std::uint64_t common_value(Warp& warp, const Slot& slot) {
  const auto* values = warp.lanes<std::uint64_t>(slot);
  for (int lane = 1; lane < kLanes; ++lane) {
    if (values[lane] != values[0]) throw Fault("the lanes of a warp have different descriptors");
  }
  return values[0];
}

template <bool kDepthOutside>
void start_product(Warp& warp, const Step& step, std::uint32_t) {
  if (!warp.products_fenced) throw Fault("a product of registers without a fence after their use");
  const auto& list = warp.block().launch().program.list;
  std::vector<std::uint32_t*> sums;
  for (std::uint32_t i = 0; i < step.list_size; ++i) {
    sums.push_back(warp.lanes<std::uint32_t>(list[step.list + i]));
  }
  const auto adds = warp.predicate(step.at[2]);
  if (adds != 0 && adds != ~0U) throw Fault("the lanes of a warp differ in what they add to");
  warp.block().async().start_product(warp,
                                     {.a = common_value(warp, step.at[0]),
                                      .b = common_value(warp, step.at[1]),
                                      .columns = static_cast<int>(step.number),
                                      .depth_outside = kDepthOutside,
                                      .adds = adds != 0,
                                      .sums = list[step.list].offset},
                                     sums);
}

void commit_products(Warp& warp, const Step&, std::uint32_t) {
  warp.block().async().commit_products(warp);
}

void wait_for_products(Warp& warp, const Step& step, std::uint32_t) {
  if (!warp.block().async().wait_for_products(warp, static_cast<std::size_t>(step.number))) {
    return warp.repeat_later();
  }
  warp.products_fenced = false;
}

void fence_products(Warp& warp, const Step&, std::uint32_t) { warp.products_fenced = true; }

/// m64nNk16 of bfloat16 with both operands in shared memory, k along their rows or outside of them.
void decode_product(Decoder& decoder) {
  const auto shape = decoder.take_front();
  int columns = 0;
  if (!shape.starts_with("m64n") || !shape.ends_with("k16")) decoder.unknown();
  std::from_chars(shape.data() + 4, shape.data() + shape.size(), columns);
  for (const auto word : {"f32", "bf16", "bf16"}) {
    if (!decoder.take(word)) decoder.unknown();
  }
  const auto& sums = decoder.term(0);
  if (columns % 8 != 0 || sums.parts.size() != static_cast<std::size_t>(columns / 2) ||
      decoder.terms() != 8 || decoder.number(4) != 1 || decoder.number(5) != 1 ||
      decoder.number(6) > 1 || decoder.number(7) != decoder.number(6)) {
    decoder.unknown();
  }
  for (const auto& part : sums.parts) decoder.append(decoder.target(part, 4));
  auto& step = decoder.step();
  step.at = {decoder.source(1, 8), decoder.source(2, 8), decoder.predicate(decoder.term(3))};
  step.number = columns;
  decoder.finish(decoder.number(6) == 1 ? start_product<true> : start_product<false>);
}

void decode_warpgroup(Decoder& decoder) {
  auto& step = decoder.step();
  step.gathers = Gathers::All;
  const auto what = decoder.take_front();
  if (!decoder.take("sync") || !decoder.take("aligned")) decoder.unknown();
  if (what == "mma_async") return decode_product(decoder);
  if (what == "fence") return decoder.finish(fence_products);
  if (what == "commit_group") return decoder.finish(commit_products);
  if (what != "wait_group") decoder.unknown();
  step.number = static_cast<std::int64_t>(decoder.number(0));
  decoder.finish(wait_for_products);
}

/// More registers come when others have left theirs.
template <bool kMore>
void set_registers(Warp& warp, const Step& step, std::uint32_t) {
  const auto threads = static_cast<int>(warp.block().launch().block.count());
  const int at_start = kRegisters / threads / 8 * 8;
  const auto of = [&](const Warp& one) {
    return one.registers_per_thread == 0 ? at_start : one.registers_per_thread;
  };
  const auto wanted = static_cast<int>(step.number);
  if (kMore ? wanted < of(warp) : wanted > of(warp)) {
    throw Fault(fmt::format("{} registers a thread where it has {}", wanted, of(warp)));
  }
  int taken = wanted * kLanes;
  for (const auto& other : warp.block().warps()) {
    if (other.get() != &warp) taken += of(*other) * kLanes;
  }
  if (kMore && taken > kRegisters) return warp.repeat_later();
  warp.registers_per_thread = wanted;
  warp.block().progress();
}

void decode_registers(Decoder& decoder) {
  auto& step = decoder.step();
  step.gathers = Gathers::All;
  step.number = static_cast<std::int64_t>(decoder.number(0));
  if (!decoder.take("sync") || !decoder.take("aligned") || decoder.take_type() != Type::U32 ||
      step.number % 8 != 0 || step.number < 24 || step.number > 256) {
    decoder.unknown();
  }
  decoder.finish(decoder.take("inc")   ? set_registers<true>
                 : decoder.take("dec") ? set_registers<false>
                                       : nullptr);
}

}  // namespace

void decode_box(Decoder& decoder) {
  if (!decoder.take("tensor")) decoder.unknown();
  const auto dimension = decoder.take_front();
  if (dimension.size() != 2 || dimension[1] != 'd' || dimension[0] < '1' || dimension[0] > '5') {
    decoder.unknown();
  }
  decode_box_of(decoder, static_cast<std::size_t>(dimension[0] - '0'));
}

std::span<const Family> hopper_family() {
  static constexpr Family kFamily[] = {
      {"mbarrier", decode_barrier}, {"wgmma", decode_warpgroup}, {"setmaxnreg", decode_registers}};
  return kFamily;
}

}  // namespace triptych::ptx
