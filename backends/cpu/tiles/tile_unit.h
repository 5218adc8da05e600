// Products on the tile unit of a processor (Intel AMX), and a stand-in with the same bits for
// processors without one. A tile holds 16 rows of 64 bytes: words of two bfloat16 or four int8, or
// float32 or int32 sums. The unit computes as Intel's manual defines TDPBF16PS and TDPBSSD. For
// bfloat16, the even and the odd elements of a step are two chains of fused multiply-adds. Their
// sum is added to the result. Subnormal operands and results count as 0. Sums of int8 wrap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace triptych::cpu {

/// Elements of neighbouring k, the first one lowest.
using TileWord = std::uint32_t;

enum class TileNumbers { Bf16, Int8 };

inline constexpr std::int64_t kTileRows = 16;     ///< rows of a, and of the sums
inline constexpr std::int64_t kTileColumns = 16;  ///< columns of b, and of the sums
inline constexpr std::int64_t kTileDepth = 16;    ///< most words of k in one step
inline constexpr std::int64_t kMostTileBlocks = 2;
inline constexpr std::int64_t kMostTileRowBlocks = 4;
/// Rows, and columns, of the sums of a square product.
inline constexpr std::int64_t kTileBlock = kMostTileBlocks * kTileRows;
static_assert(kTileRows == kTileColumns);
inline constexpr std::int64_t kTileWordBytes = sizeof(TileWord);

/// Empty when this process can use a tile unit for both kinds of numbers, else why not. Checked
/// once. Requests the system's permission.
const std::string& tile_unit_missing();

/// Reason of a kernel that accepts a node for the unit (Verdict::reason).
inline constexpr const char* kOnTileUnit = "runs on the tile unit (AMX)";

/// One factor of a product: words in blocks of 16 rows (a) or columns (b), at any address.
struct TileOperand {
  const std::byte* data = nullptr;
  std::span<const std::int64_t> steps;  ///< bytes from data to where each step begins
  std::int64_t line = 0;                ///< bytes from a row of a, or a word of k in b, to the next
  std::int64_t block = 0;               ///< bytes from a block to the next
};

/// sums[row][column] = sum over steps and words k of a[step][row][k] * b[step][k][column].
struct TileProduct {
  TileOperand a, b;              ///< with as many steps
  void* sums = nullptr;          ///< float32 or int32
  std::int64_t sums_stride = 0;  ///< elements from one row to the next
  /// Up to two of both, or up to kMostTileRowBlocks of rows and one of columns.
  std::int64_t row_blocks = 1, column_blocks = 1;
  bool accumulate = false;  ///< adds to the existing sums
};

/// The tile unit of this thread, from which no other TileUnit may be used while it lives.
class TileUnit {
 public:
  enum class Kind { Hardware, StandIn };

  /// `depth`: words of k in each step, at most kTileDepth. Hardware needs tile_unit_missing() to be
  /// empty.
  TileUnit(TileNumbers numbers, std::int64_t depth, Kind kind);
  ~TileUnit();
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;

  void multiply(const TileProduct& product) const;

 private:
  TileNumbers numbers_;
  std::int64_t depth_;
  Kind kind_;
};

/// Hardware where there is one.
TileUnit::Kind tile_unit_kind();

}  // namespace triptych::cpu
