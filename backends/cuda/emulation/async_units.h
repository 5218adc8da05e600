// Units that work independently of the threads of an emulated block of Hopper: barriers with
// phases, the copy engine, and the products of warpgroups. Nothing happens at the time of the
// request. A box is poison from then on, and lands when a thread waits for its phase. Sums are
// poison from the start of a product to the wait that covers it. Behaviour that a GPU leaves
// undefined is a fault.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/emulation/order_watch.h"
#include "backends/cuda/emulation/schedule.h"
#include "core/base/float16.h"

namespace triptych::cuda::emulation {

inline constexpr int kTileRowBytes = 128;           ///< of 64 bfloat16, 128-byte swizzle
inline constexpr std::size_t kSwizzleBytes = 1024;  ///< a tile starts at a multiple of them
inline constexpr unsigned kWarpgroup = 128;

/// A tensor of bfloat16 as the copy engine reads it, the innermost axis first and dense.
struct TensorMap {
  const BFloat16* data;
  std::int64_t sizes[4];
  int box[4];

  int rows() const { return box[1] * box[2] * box[3]; }
  /// Row r of the box at this place of the three outer axes; null outside of the tensor.
  const BFloat16* row(const int (&at)[3], int r) const;
};

/// Throws DeviceError for arguments that cuTensorMapEncodeTiled refuses.
TensorMap encode_tensor_map(const BFloat16* data, const std::int64_t (&sizes)[4],
                            const int (&box)[4]);

/// A box on its way to rows of a swizzled tile.
struct BoxCopy {
  TensorMap from;
  int at[4];
  std::byte* to;  ///< its first row
  int bytes() const { return from.rows() * kTileRowBytes; }
  /// Calls work(elements, count) for the part of each row inside of the tensor.
  template <class Work>
  void for_each_row(const Work& work) const {
    const auto begin = std::max<std::int64_t>(at[0], 0);
    const auto end = std::min<std::int64_t>(at[0] + from.box[0], from.sizes[0]);
    for (int r = 0; r < from.rows() && begin < end; ++r) {
      if (const auto* row = from.row({at[1], at[2], at[3]}, r)) work(row + begin, end - begin);
    }
  }
};

/// One thread's part of 64 x 128 sums += 64 rows of a times 128 rows of b, 64 values of k.
struct TileProduct {
  static constexpr int kSums = 64, kRowsA = 64, kRowsB = 128;
  float* sums;
  const std::byte *a, *b;  ///< first rows
  void (*add)(const TileProduct& product, unsigned thread, float (&sums)[kSums]);
};

class AsyncUnits {
 public:
  explicit AsyncUnits(Block& block) : block_(block) {}

  /// `checked`: an OrderWatch looks on.
  void begin_block(unsigned threads, OperandReads operands, bool checked);
  void block_met();
  void warp_met(unsigned warp, std::uint32_t mask);
  /// Fails the thread when something it started is still under way.
  void thread_ended(bool last);

  // Barriers: a word of shared memory holds the number of one.
  void begin(std::uint64_t& word, int arrivals, const Location& where);
  void publish();
  void expect(std::uint64_t& word, int bytes, const Location& where);
  void arrive(std::uint64_t& word, const Location& where);
  void come(std::uint64_t& word, int bytes, const Location& where);
  void wait(std::uint64_t& word, unsigned parity, const Location& where);
  /// Description of the event that the thread waits for, when nothing can cause it.
  std::string awaited_by(unsigned thread) const;

  void copy(const BoxCopy& copy, std::uint64_t& word, const Location& where);

  // Products of the running thread's warpgroup.
  void fence();
  void multiply(const TileProduct& product, const Location& where);
  void commit() { ++running().committed; }
  /// Until all but the last `pending` groups are done.
  void wait_products(unsigned pending, const Location& where);

  void take_registers(int count, const Location& where);
  void leave_registers(int count, const Location& where);

 private:
  struct PendingCopy {
    BoxCopy copy;
    Location where;
  };
  static constexpr std::size_t kRegisters = OrderWatch::kMostBarriers;
  struct Barrier {
    const std::uint64_t* word = nullptr;
    int arrivals = 0, missing = 0;
    std::int64_t expected = 0;  ///< bytes that have not come
    unsigned parity = 0;
    unsigned begun_by = 0, begun_in = 0;
    bool published = false;
    std::vector<PendingCopy> copies;

    std::int64_t pending_bytes() const;
    bool can_end() const { return missing == 0 && pending_bytes() == expected; }
  };
  struct Started {
    TileProduct product;
    unsigned group = 0;
    Location where;
  };
  /// Sums that products add to: the registers hold poison meanwhile.
  struct Sums {
    float* registers = nullptr;
    float values[TileProduct::kSums];
  };
  struct Thread {
    std::vector<Started> products;
    std::vector<Sums> sums;
    unsigned started = 0, committed = 0;
    bool fenced = false;
    int registers = 0;
    std::size_t waits_for = 0;  ///< a barrier, or registers
  };
  struct Operands {
    const std::byte *a = nullptr, *b = nullptr;
  };
  /// The last products of a warpgroup, by number: its threads must ask for the same ones.
  static constexpr unsigned kRemembered = 64;
  struct Warpgroup {
    unsigned started = 0;
    std::array<Operands, kRemembered> operands;
  };

  Thread& running();
  Barrier& barrier_of(const std::uint64_t& word, const Location& where);
  std::size_t index_of(const Barrier& barrier) const {
    return static_cast<std::size_t>(&barrier - barriers_.data());
  }
  void settle(Barrier& barrier, const Location& where);
  void arrive_at(Barrier& barrier, const Location& where);
  void end_phase(Barrier& barrier);
  std::size_t offset_of(const void* address) const;
  void check_operands(const TileProduct& product, const Location& where);
  void agree(const TileProduct& product, const Location& where);
  Sums& sums_of(float* registers, const Location& where);
  void check_untouched(const Sums& sums, const Location& where);
  void finish(const Started& started);
  void give_back(const Location& where);

  Block& block_;
  unsigned blocks_met_ = 0;
  OperandReads operands_ = OperandReads::Latest;
  bool checked_ = false;
  int free_registers_ = 0;
  std::vector<Barrier> barriers_;
  std::vector<Thread> threads_;
  std::vector<Warpgroup> warpgroups_;
  OrderWatch watch_;
};

/// The units of the running thread's block.
AsyncUnits& async_units();

}  // namespace triptych::cuda::emulation
