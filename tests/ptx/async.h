// Asynchronous work of a block: copies of single pieces (cp.async), the copy engine's boxes and the
// barriers that count their bytes, and products of warpgroups. Targets of a copy hold no numbers
// from its start on, and registers of a product none, until somebody has waited.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace triptych::ptx {

class Block;
class Warp;

/// Fills with bytes that are NaN in every floating type.
void spoil(std::byte* begin, std::size_t bytes);

/// The copies of one thread.
class LaneCopies {
 public:
  /// `taken` bytes of the source, then zeros.
  void start(std::byte* target, const std::byte* source, std::size_t bytes, std::size_t taken);
  void commit();
  /// All groups but the last `pending` happen.
  void wait(std::size_t pending);
  void clear();

 private:
  struct Copy {
    std::byte* target;
    const std::byte* source;
    std::size_t bytes, taken;
  };
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> groups_;
};

/// A barrier as it lies in eight bytes of shared memory.
struct Barrier {
  std::uint32_t expected = 0, pending = 0;
  std::int32_t bytes = 0;  ///< that have yet to come
  bool phase = false;

  /// Throws Fault when there is none.
  static Barrier load(const std::byte* word);
  void store(std::byte* word) const;
};

/// A tensor as the copy engine reads it: the driver's result for cuTensorMapEncodeTiled's
/// arguments. It lies in the 128 bytes of a CUtensorMap.
struct alignas(64) TensorMap {
  static constexpr std::uint32_t kMark = 0x70617854;
  std::uint32_t mark = 0;
  std::uint8_t rank = 0, element_bytes = 0, swizzle_bytes = 0;  ///< 0: no swizzle
  std::uint64_t data = 0;
  std::array<std::uint32_t, 5> sizes = {};
  std::array<std::uint64_t, 4> strides = {};  ///< in bytes, of the second axis and on
  std::array<std::uint16_t, 5> box = {};

  std::size_t box_bytes() const;
};
static_assert(sizeof(TensorMap) == 128);

/// The same address in a tile with 16-byte pieces exchanged within every 8 rows.
std::uint64_t swizzled(std::uint64_t address, int swizzle_bytes);

/// One wgmma.mma_async of m64nNk16 with both operands in shared memory.
struct Product {
  std::uint64_t a = 0, b = 0;  ///< descriptors
  int columns = 0;
  bool depth_outside = false;  ///< rows of the operands are values of k
  bool adds = true;            ///< to the sums. Otherwise restarts them
  std::uint32_t sums = 0;      ///< where the warps' first accumulator lies
  int joined = 0;              ///< warps
  bool done = false;
  std::uint64_t operands = 0;  ///< a hash of them when it started
  std::size_t line = 0;        ///< step of the program
};

class AsyncUnits {
 public:
  explicit AsyncUnits(Block& block) : block_(block) {}
  void begin();
  /// Throws Fault when something is still under way.
  void end() const;

  void start_box(const TensorMap& map, const std::array<std::int32_t, 5>& at, std::uint64_t target,
                 std::uint64_t barrier);
  void arrive(std::uint64_t barrier, std::uint32_t count);
  void expect(std::uint64_t barrier, std::int32_t bytes);
  /// True when the phase of this parity is over. The awaited event happens now.
  bool is_over(std::uint64_t barrier, bool parity);

  /// The sums of `warp` are its `lists` of lanes, each in a register.
  void start_product(Warp& warp, Product product, const std::vector<std::uint32_t*>& sums);
  void commit_products(Warp& warp);
  /// False: other warps of the warpgroup must come first.
  bool wait_for_products(Warp& warp, std::size_t pending);

 private:
  struct Box {
    TensorMap map;
    std::array<std::int32_t, 5> at;
    std::uint64_t target, barrier;
  };
  /// Accumulators of running products: per warp, registers and their contents, by register and
  /// lane.
  struct Flight {
    std::array<std::vector<std::uint32_t*>, 4> registers;
    std::array<std::vector<float>, 4> sums;
    std::array<std::size_t, 4> last = {};  ///< product that uses them
  };
  struct Warpgroup {
    std::vector<Product> products;
    std::vector<std::size_t> group_ends;
    std::map<std::uint32_t, Flight> flights;
  };

  void deliver(const Box& box);
  void complete(std::uint64_t barrier, const Barrier& value);
  void execute(Warpgroup& group, Product& product);
  void read_operands(const Product& product, std::vector<float>& a, std::vector<float>& b);
  void give_sums_back(Warpgroup& group, Warp& warp, std::size_t done);
  Warpgroup& group_of(const Warp& warp);

  Block& block_;
  std::deque<Box> boxes_;
  std::map<int, Warpgroup> groups_;
};

}  // namespace triptych::ptx
