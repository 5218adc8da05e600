// Products of a warp on tensor cores, and the instructions that load their operands: ldmatrix,
// mma.sync, cp.async.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

/// Matrices of 8 x 8 elements of 16 bits, eight lanes with the addresses of the rows of each. A
/// lane gets two neighbours of row lane / 4, or transposed of column lane / 4.
template <bool kTransposed>
void load_matrices(Warp& warp, const Step& step, std::uint32_t) {
  const auto& list = warp.block().launch().program.list;
  std::uint32_t results[4][kLanes];
  for (std::uint32_t matrix = 0; matrix < step.list_size; ++matrix) {
    std::uint16_t rows[8][8];
    for (std::uint32_t row = 0; row < 8; ++row) {
      const int lane = static_cast<int>(8 * matrix + row);
      std::memcpy(rows[row], warp.memory(Space::Shared, warp.address_of(step, lane), 16, lane), 16);
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      const int first = lane / 4, second = lane % 4 * 2;
      const std::uint32_t low = kTransposed ? rows[second][first] : rows[first][second];
      const std::uint32_t high = kTransposed ? rows[second + 1][first] : rows[first][second + 1];
      results[matrix][lane] = high << 16 | low;
    }
  }
  for (std::uint32_t matrix = 0; matrix < step.list_size; ++matrix) {
    std::memcpy(warp.lanes<std::uint32_t>(list[step.list + matrix]), results[matrix],
                sizeof results[matrix]);
  }
}

void take_registers(Decoder& decoder, const Term& list, std::size_t count) {
  if (list.kind != Term::Kind::List || list.parts.size() != count) decoder.unknown();
  for (const auto& part : list.parts) decoder.append(decoder.target(part, 4));
}

/// All lanes of the warp do it together.
bool take_aligned(Decoder& decoder) {
  decoder.step().gathers = Gathers::All;
  return decoder.take("sync") && decoder.take("aligned");
}

void decode_load_matrices(Decoder& decoder) {
  if (!take_aligned(decoder) || !decoder.take("m8n8") || decoder.take_type() != Type::U16) {
    decoder.unknown();
  }
  if (!decoder.take("shared::cta") && !decoder.take("shared")) decoder.unknown();
  const std::size_t count = decoder.take("x4")   ? 4
                            : decoder.take("x2") ? 2
                            : decoder.take("x1") ? 1
                                                 : 0;
  if (count == 0) decoder.unknown();
  take_registers(decoder, decoder.term(0), count);
  decoder.address(1);
  decoder.finish(decoder.take("trans") ? load_matrices<true> : load_matrices<false>);
}

float half_of(std::uint32_t pair, int which) {
  return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xFFFF0000);
}

/// d = a b + c of m16n8k16 in bfloat16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"), each sum one
/// chain of fused multiply-adds over k, as the emulation's.
void multiply(Warp& warp, const Step& step, std::uint32_t) {
  set_float_control(kRoundToNearest | kFlush);
  const auto* list = warp.block().launch().program.list.data() + step.list;
  const auto lanes = [&](int i) { return warp.lanes<std::uint32_t>(list[i]); };
  float a[16][16], b[16][8], sums[4][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4 * 2;
    for (int i = 0; i < 2; ++i) {
      for (int part = 0; part < 4; ++part) {
        a[g + part % 2 * 8][t + part / 2 * 8 + i] = half_of(lanes(4 + part)[lane], i);
      }
      for (int part = 0; part < 2; ++part) {
        b[t + part * 8 + i][g] = half_of(lanes(8 + part)[lane], i);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float sum = std::bit_cast<float>(lanes(10 + i)[lane]);
      for (int k = 0; k < 16; ++k) sum = std::fma(a[row][k], b[k][column], sum);
      sums[i][lane] = sum;
    }
  }
  for (int i = 0; i < 4; ++i) std::memcpy(lanes(i), sums[i], sizeof sums[i]);
}

void decode_multiply(Decoder& decoder) {
  if (!take_aligned(decoder)) decoder.unknown();
  for (const auto word : {"m16n8k16", "row", "col", "f32", "bf16", "bf16", "f32"}) {
    if (!decoder.take(word)) decoder.unknown();
  }
  take_registers(decoder, decoder.term(0), 4);
  take_registers(decoder, decoder.term(1), 4);
  take_registers(decoder, decoder.term(2), 2);
  take_registers(decoder, decoder.term(3), 4);
  decoder.finish(multiply);
}

void start_copy(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto bytes = static_cast<std::size_t>(step.number);
  const auto* taken = warp.lanes<std::uint32_t>(step.at[2]);
  for_lanes(mask, [&](int i) {
    auto* target = warp.memory(Space::Shared, warp.address_of(step, i), bytes, i);
    if (taken[i] > bytes) throw Fault("a copy of more bytes than its size");
    const auto from = warp.address_of(step, i, 1);
    const std::byte* source = taken[i] == 0 ? nullptr : warp.memory(Space::Global, from, bytes, i);
    warp.copies(i).start(target, source, bytes, taken[i]);
  });
}

void commit_copies(Warp& warp, const Step&, std::uint32_t mask) {
  for_lanes(mask, [&](int i) { warp.copies(i).commit(); });
}

void wait_for_copies(Warp& warp, const Step& step, std::uint32_t mask) {
  for_lanes(mask, [&](int i) { warp.copies(i).wait(static_cast<std::size_t>(step.number)); });
}

void wait_for_all_copies(Warp& warp, const Step&, std::uint32_t mask) {
  for_lanes(mask, [&](int i) {
    warp.copies(i).commit();
    warp.copies(i).wait(0);
  });
}

}  // namespace

void decode_box(Decoder& decoder);

namespace {

void decode_copy(Decoder& decoder) {
  auto& step = decoder.step();
  if (!decoder.take("async")) decoder.unknown();
  if (decoder.take("bulk")) return decode_box(decoder);
  if (decoder.take("commit_group")) return decoder.finish(commit_copies);
  if (decoder.take("wait_all")) return decoder.finish(wait_for_all_copies);
  if (decoder.take("wait_group")) {
    step.number = static_cast<std::int64_t>(decoder.number(0));
    return decoder.finish(wait_for_copies);
  }
  const bool cached = decoder.take("ca");
  if (!cached && !decoder.take("cg")) decoder.unknown();
  if (!decoder.take("shared::cta") && !decoder.take("shared")) decoder.unknown();
  if (!decoder.take("global")) decoder.unknown();
  const auto bytes = decoder.number(2);
  if (bytes != 16 && !(cached && (bytes == 4 || bytes == 8))) decoder.unknown();
  step.number = static_cast<std::int64_t>(bytes);
  decoder.address(0, 0);
  decoder.address(1, 1);
  step.at[2] = decoder.source(decoder.terms() == 4 ? 3 : 2, 4);
  decoder.finish(start_copy);
}

}  // namespace

std::span<const Family> tensor_family() {
  static constexpr Family kFamily[] = {
      {"ldmatrix", decode_load_matrices}, {"mma", decode_multiply}, {"cp", decode_copy}};
  return kFamily;
}

}  // namespace triptych::ptx
