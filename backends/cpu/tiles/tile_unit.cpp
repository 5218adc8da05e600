// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/tile_unit.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/quantized_math.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define TRIPTYCH_HAS_AMX 1
#endif

namespace triptych::cpu {
namespace {

/// `rounded` is `exact` as a float. The unit flushes subnormal values before it rounds to the grid
/// of subnormals.
float flushed(float rounded, double exact) {
  const bool tiny = std::abs(exact) < 0x1p-126 - 0x1p-151;
  return tiny ? std::copysign(0.0F, rounded) : rounded;
}

float without_subnormals(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}

/// One element of a word.
float element(TileWord word, int index) {
  const auto bits = index == 0 ? word << 16 : word & 0xFFFF0000U;
  return without_subnormals(std::bit_cast<float>(bits));
}

TileWord word_at(const std::byte* address) {
  TileWord word = 0;
  std::memcpy(&word, address, sizeof(word));
  return word;
}

/// One step of one row of a and one column of b, added to `sum`.
float stand_in_step(const std::byte* a, const std::byte* b, std::int64_t b_line, std::int64_t depth,
                    float sum) {
  std::array<float, 2> chains{};
  for (std::int64_t k = 0; k < depth; ++k) {
    const auto left = word_at(a + k * kTileWordBytes), right = word_at(b + k * b_line);
    for (const int i : {0, 1}) {
      auto& chain = chains[static_cast<std::size_t>(i)];
      const float x = element(left, i), y = element(right, i);
      chain = flushed(std::fma(x, y, chain), double{x} * double{y} + double{chain});
    }
  }
  const auto add = [](float one, float other) {
    return flushed(one + other, double{one} + double{other});
  };
  return add(without_subnormals(sum), add(chains[0], chains[1]));
}

std::int32_t stand_in_step(const std::byte* a, const std::byte* b, std::int64_t b_line,
                           std::int64_t depth, std::int32_t sum) {
  for (std::int64_t k = 0; k < depth; ++k) {
    const auto left = word_at(a + k * kTileWordBytes), right = word_at(b + k * b_line);
    for (int bit = 0; bit < 32; bit += 8) {
      const std::int32_t product = static_cast<std::int8_t>(left >> bit & 0xFFU) *
                                   static_cast<std::int8_t>(right >> bit & 0xFFU);
      sum = wrapping_add(sum, product);
    }
  }
  return sum;
}

template <class Sum>
void multiply_by_stand_in(const TileProduct& p, std::int64_t depth) {
  auto* sums = static_cast<Sum*>(p.sums);
  for (std::int64_t row = 0; row < p.row_blocks * kTileRows; ++row) {
    const auto* a = p.a.data + row / kTileRows * p.a.block + row % kTileRows * p.a.line;
    for (std::int64_t column = 0; column < p.column_blocks * kTileColumns; ++column) {
      const auto* b =
          p.b.data + column / kTileColumns * p.b.block + column % kTileColumns * kTileWordBytes;
      Sum& sum = sums[row * p.sums_stride + column];
      if (!p.accumulate) sum = 0;
      for (std::size_t step = 0; step < p.a.steps.size(); ++step)
        sum = stand_in_step(a + p.a.steps[step], b + p.b.steps[step], p.b.line, depth, sum);
    }
  }
}

#if TRIPTYCH_HAS_AMX

std::string ask_for_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned needed = 1U << 22 | 1U << 24 | 1U << 25;  // bf16, tiles, int8: leaf 7, edx
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & needed) != needed)
    return "this processor has no tile unit (AMX)";
  constexpr long request_permission = 0x1023, tile_data = 18;  // asm/prctl.h of Linux 5.16
  if (syscall(SYS_arch_prctl, request_permission, tile_data) != 0)
    return "the system does not permit this process to use the processor's tile unit (AMX)";
  return {};
}

/// Operand of LDTILECFG.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{};
  std::array<std::uint8_t, 16> rows{};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles 0 to 3 hold sums, 4 and 5 rows of a, 6 and 7 columns of b.
constexpr TileConfig config_of(std::int64_t depth) {
  TileConfig config;
  for (std::size_t tile = 0; tile < 8; ++tile) {
    const bool of_a = tile == 4 || tile == 5, of_b = tile >= 6;
    config.row_bytes[tile] = static_cast<std::uint16_t>(of_a ? depth * 4 : 64);
    config.rows[tile] = static_cast<std::uint8_t>(of_b ? depth : kTileRows);
  }
  return config;
}

// In memory at all times: g++ does not see that the instruction reads all 64 bytes.
constexpr auto kConfigs = [] {
  std::array<TileConfig, kTileDepth + 1> configs;
  for (std::int64_t depth = 1; depth <= kTileDepth; ++depth)
    configs[static_cast<std::size_t>(depth)] = config_of(depth);
  return configs;
}();

[[gnu::target("amx-tile")]] void configure(std::int64_t depth) {
  _tile_loadconfig(&kConfigs[static_cast<std::size_t>(depth)]);
}

/// Makes the compiler finish all stores, because it does not see the reads of tile loads.
void finish_stores() { __asm__ volatile("" ::: "memory"); }

[[gnu::target("amx-tile")]] void release() { _tile_release(); }

// The numbers of tiles must be constants.
#define TRIPTYCH_FOR_SUMS(ACTION)                                         \
  {                                                                       \
    ACTION(0, sums);                                                      \
    if constexpr (kColumns == 2) ACTION(1, sums + kTileColumns);          \
    if constexpr (kRows == 2) ACTION(2, below);                           \
    if constexpr (kRows * kColumns == 4) ACTION(3, below + kTileColumns); \
  }
#define TRIPTYCH_FOR_HIGH_SUMS(ACTION)                     \
  {                                                        \
    ACTION(0, sums);                                       \
    ACTION(1, sums + block);                               \
    ACTION(2, sums + 2 * block);                           \
    if constexpr (kRows == 4) ACTION(3, sums + 3 * block); \
  }
#define TRIPTYCH_ZERO(tile, at) _tile_zero(tile)
#define TRIPTYCH_LOAD(tile, at) _tile_loadd(tile, at, stride)
#define TRIPTYCH_STORE(tile, at) _tile_stored(tile, at, stride)

#define TRIPTYCH_MULTIPLY(sum, a, b)             \
  do {                                           \
    if constexpr (kNumbers == TileNumbers::Bf16) \
      _tile_dpbf16ps(sum, a, b);                 \
    else                                         \
      _tile_dpbssd(sum, a, b);                   \
  } while (false)

template <TileNumbers kNumbers, int kRows, int kColumns>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_on_unit(const TileProduct& p) {
  const auto stride = p.sums_stride * kTileWordBytes;
  auto* sums = static_cast<TileWord*>(p.sums);
  auto* below = sums + kTileRows * p.sums_stride;
  finish_stores();
  if (p.accumulate)
    TRIPTYCH_FOR_SUMS(TRIPTYCH_LOAD)
  else
    TRIPTYCH_FOR_SUMS(TRIPTYCH_ZERO)
  for (std::size_t step = 0; step < p.a.steps.size(); ++step) {
    const std::byte* a = p.a.data + p.a.steps[step];
    const std::byte* b = p.b.data + p.b.steps[step];
    _tile_loadd(4, a, p.a.line);
    _tile_loadd(6, b, p.b.line);
    TRIPTYCH_MULTIPLY(0, 4, 6);
    if constexpr (kColumns == 2) {
      _tile_loadd(7, b + p.b.block, p.b.line);
      TRIPTYCH_MULTIPLY(1, 4, 7);
    }
    if constexpr (kRows == 2) {
      _tile_loadd(5, a + p.a.block, p.a.line);
      TRIPTYCH_MULTIPLY(2, 5, 6);
    }
    if constexpr (kRows * kColumns == 4) TRIPTYCH_MULTIPLY(3, 5, 7);
  }
  TRIPTYCH_FOR_SUMS(TRIPTYCH_STORE)
}

/// Three or four blocks of rows by one of columns.
template <TileNumbers kNumbers, int kRows>
[[gnu::target("amx-tile,amx-bf16,amx-int8")]] void multiply_high(const TileProduct& p) {
  const auto stride = p.sums_stride * kTileWordBytes, block = kTileRows * p.sums_stride;
  auto* sums = static_cast<TileWord*>(p.sums);
  finish_stores();
  if (p.accumulate)
    TRIPTYCH_FOR_HIGH_SUMS(TRIPTYCH_LOAD)
  else
    TRIPTYCH_FOR_HIGH_SUMS(TRIPTYCH_ZERO)
  for (std::size_t step = 0; step < p.a.steps.size(); ++step) {
    const std::byte* a = p.a.data + p.a.steps[step];
    _tile_loadd(6, p.b.data + p.b.steps[step], p.b.line);
    _tile_loadd(4, a, p.a.line);
    TRIPTYCH_MULTIPLY(0, 4, 6);
    _tile_loadd(5, a + p.a.block, p.a.line);
    TRIPTYCH_MULTIPLY(1, 5, 6);
    _tile_loadd(4, a + 2 * p.a.block, p.a.line);
    TRIPTYCH_MULTIPLY(2, 4, 6);
    if constexpr (kRows == 4) {
      _tile_loadd(5, a + 3 * p.a.block, p.a.line);
      TRIPTYCH_MULTIPLY(3, 5, 6);
    }
  }
  TRIPTYCH_FOR_HIGH_SUMS(TRIPTYCH_STORE)
}

template <TileNumbers kNumbers>
void multiply_by_hardware(const TileProduct& p) {
  if (p.row_blocks > 2) {
    p.row_blocks == 4 ? multiply_high<kNumbers, 4>(p) : multiply_high<kNumbers, 3>(p);
  } else if (p.row_blocks == 2) {
    p.column_blocks == 2 ? multiply_on_unit<kNumbers, 2, 2>(p)
                         : multiply_on_unit<kNumbers, 2, 1>(p);
  } else {
    p.column_blocks == 2 ? multiply_on_unit<kNumbers, 1, 2>(p)
                         : multiply_on_unit<kNumbers, 1, 1>(p);
  }
}

#else

std::string ask_for_tiles() { return "there is no tile unit (AMX) outside of x86-64 Linux"; }
void configure(std::int64_t) {}
void release() {}
template <TileNumbers>
void multiply_by_hardware(const TileProduct&) {}

#endif

}  // namespace

const std::string& tile_unit_missing() {
  static const std::string reason = ask_for_tiles();
  return reason;
}

TileUnit::Kind tile_unit_kind() {
  return tile_unit_missing().empty() ? TileUnit::Kind::Hardware : TileUnit::Kind::StandIn;
}

TileUnit::TileUnit(TileNumbers numbers, std::int64_t depth, Kind kind)
    : numbers_(numbers), depth_(depth), kind_(kind) {
  if (kind_ == Kind::Hardware) configure(depth_);
}

TileUnit::~TileUnit() {
  if (kind_ == Kind::Hardware) release();
}

void TileUnit::multiply(const TileProduct& product) const {
  const bool floats = numbers_ == TileNumbers::Bf16;
  if (kind_ == Kind::Hardware) {
    floats ? multiply_by_hardware<TileNumbers::Bf16>(product)
           : multiply_by_hardware<TileNumbers::Int8>(product);
  } else {
    floats ? multiply_by_stand_in<float>(product, depth_)
           : multiply_by_stand_in<std::int32_t>(product, depth_);
  }
}

}  // namespace triptych::cpu
