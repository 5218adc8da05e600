// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/async.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/ptx/float_control.h"
#include "tests/ptx/machine.h"

namespace triptych::ptx {
namespace {

constexpr std::uint64_t kMostBytes = (1U << 20) - 1;  ///< that a barrier can wait for
constexpr int kWarpgroup = 4;                         ///< warps

float from_bf16(const std::byte* memory) {
  std::uint16_t bits;
  std::memcpy(&bits, memory, sizeof bits);
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint64_t hash_of(const std::vector<float>& a, const std::vector<float>& b) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const auto* values : {&a, &b}) {
    for (const float value : *values) {
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211ULL;
    }
  }
  return hash;
}

/// The position of (row, k) in an operand with rows along k (PTX ISA, "Matrix descriptor format"
/// and "Canonical layouts"): groups of eight rows, each row as long as the swizzle is wide.
std::uint64_t operand_address(std::uint64_t descriptor, int row, int k) {
  constexpr int kWidths[] = {16, 128, 64, 32};
  const int width = kWidths[descriptor >> 62];
  if ((descriptor >> 49 & 7) != 0) throw Fault("a descriptor's base offset is not known");
  const std::uint64_t start = (descriptor & 0x3FFF) << 4;
  const std::uint64_t leading = (descriptor >> 16 & 0x3FFF) << 4;
  const std::uint64_t stride = (descriptor >> 32 & 0x3FFF) << 4;
  const auto rows = static_cast<std::uint64_t>(row);
  auto address = start + rows / 8 * stride + rows % 8 * static_cast<std::uint64_t>(width);
  if (width == 16) {
    return address + static_cast<std::uint64_t>(k) / 8 * leading +
           static_cast<std::uint64_t>(k) % 8 * 2;
  }
  address += static_cast<std::uint64_t>(k) * 2;
  return swizzled(address, width);
}

/// The same where rows of the operand lie along the rows of 128 bytes: 64 of them, eight values of
/// k after another by the stride, and the next 64 by the leading offset.
std::uint64_t turned_address(std::uint64_t descriptor, int row, int k) {
  if (descriptor >> 62 != 1) throw Fault("an operand with k outside and another swizzle than 128");
  if ((descriptor >> 49 & 7) != 0) throw Fault("a descriptor's base offset is not known");
  const std::uint64_t start = (descriptor & 0x3FFF) << 4;
  const std::uint64_t leading = (descriptor >> 16 & 0x3FFF) << 4;
  const std::uint64_t stride = (descriptor >> 32 & 0x3FFF) << 4;
  const auto rows = static_cast<std::uint64_t>(row), depth = static_cast<std::uint64_t>(k);
  return swizzled(
      start + rows / 64 * leading + rows % 64 * 2 + depth / 8 * stride + depth % 8 * 128, 128);
}

}  // namespace

void spoil(std::byte* begin, std::size_t bytes) { std::memset(begin, 0xFF, bytes); }

void LaneCopies::start(std::byte* target, const std::byte* source, std::size_t bytes,
                       std::size_t taken) {
  spoil(target, bytes);
  open_.push_back({target, source, bytes, taken});
}

void LaneCopies::commit() {
  groups_.push_back(std::move(open_));
  open_.clear();
}

void LaneCopies::wait(std::size_t pending) {
  for (; groups_.size() > pending; groups_.pop_front()) {
    for (const auto& copy : groups_.front()) {
      std::memcpy(copy.target, copy.source, copy.taken);
      std::memset(copy.target + copy.taken, 0, copy.bytes - copy.taken);
    }
  }
}

void LaneCopies::clear() {
  open_.clear();
  groups_.clear();
}

Barrier Barrier::load(const std::byte* word) {
  std::uint64_t bits;
  std::memcpy(&bits, word, sizeof bits);
  if (bits >> 62 != 2) throw Fault("there is no barrier that was begun");
  Barrier barrier;
  barrier.expected = bits & 0xFFFFF;
  barrier.pending = bits >> 20 & 0xFFFFF;
  barrier.bytes = static_cast<std::int32_t>(bits >> 40 & 0x1FFFFF);
  if ((barrier.bytes & 0x100000) != 0) barrier.bytes -= 0x200000;
  barrier.phase = (bits >> 61 & 1) != 0;
  return barrier;
}

void Barrier::store(std::byte* word) const {
  const std::uint64_t bits = std::uint64_t{2} << 62 | std::uint64_t{phase} << 61 |
                             (static_cast<std::uint64_t>(bytes) & 0x1FFFFF) << 40 |
                             std::uint64_t{pending} << 20 | expected;
  std::memcpy(word, &bits, sizeof bits);
}

std::size_t TensorMap::box_bytes() const {
  std::size_t bytes = element_bytes;
  for (int axis = 0; axis < rank; ++axis) bytes *= box[static_cast<std::size_t>(axis)];
  return bytes;
}

std::uint64_t swizzled(std::uint64_t address, int swizzle_bytes) {
  const std::uint64_t mask =
      swizzle_bytes == 0 ? 0 : static_cast<std::uint64_t>(swizzle_bytes) / 16 - 1;
  return address ^ (address >> 7 & mask) << 4;
}

void AsyncUnits::begin() {
  boxes_.clear();
  groups_.clear();
}

void AsyncUnits::end() const {
  if (!boxes_.empty()) throw Fault("the block ends while a box is on its way to it");
  for (const auto& [index, group] : groups_) {
    for (const auto& product : group.products) {
      if (!product.done) throw Fault("the block ends without waiting for a product");
    }
  }
}

void AsyncUnits::start_box(const TensorMap& map, const std::array<std::int32_t, 5>& at,
                           std::uint64_t target, std::uint64_t barrier) {
  if (map.mark != TensorMap::kMark) throw Fault("the address is not that of a tensor map");
  const auto alignment = map.swizzle_bytes == 128 ? 1024U : 128U;
  if (target % alignment != 0) {
    throw Fault(fmt::format("a box goes to {:#x}, no multiple of {}", target, alignment));
  }
  static_cast<void>(Barrier::load(block_.shared(barrier, 8)));
  spoil(block_.shared(target, map.box_bytes()), map.box_bytes());
  boxes_.push_back({map, at, target, barrier});
}

/// Element by element of the box, the first axis fastest. Zeros outside of the tensor.
void AsyncUnits::deliver(const Box& box) {
  const auto& map = box.map;
  const auto elements = map.box_bytes() / map.element_bytes;
  for (std::size_t i = 0; i < elements; ++i) {
    std::size_t rest = i;
    std::uint64_t source = map.data;
    bool inside = true;
    for (std::size_t axis = 0; axis < map.rank; ++axis) {
      const auto place = box.at[axis] + static_cast<std::int64_t>(rest % map.box[axis]);
      rest /= map.box[axis];
      inside = inside && place >= 0 && place < std::int64_t{map.sizes[axis]};
      const auto stride = axis == 0 ? std::uint64_t{map.element_bytes} : map.strides[axis - 1];
      source += static_cast<std::uint64_t>(place) * stride;
    }
    const auto address = swizzled(box.target + i * map.element_bytes, map.swizzle_bytes);
    auto* target = block_.shared(address, map.element_bytes);
    if (!inside) {
      std::memset(target, 0, map.element_bytes);
      continue;
    }
    if (!block_.launch().memory.holds(source, map.element_bytes)) {
      throw Fault(fmt::format("a box reads {}", block_.launch().memory.describe(source)));
    }
    std::memcpy(target, reinterpret_cast<const std::byte*>(source), map.element_bytes);
  }
  auto barrier = Barrier::load(block_.shared(box.barrier, 8));
  barrier.bytes -= static_cast<std::int32_t>(map.box_bytes());
  complete(box.barrier, barrier);
}

void AsyncUnits::complete(std::uint64_t barrier, const Barrier& value) {
  auto next = value;
  if (next.pending == 0 && next.bytes == 0) {
    next.phase = !next.phase;
    next.pending = next.expected;
  }
  next.store(block_.shared(barrier, 8));
  block_.progress();
}

void AsyncUnits::arrive(std::uint64_t barrier, std::uint32_t count) {
  auto value = Barrier::load(block_.shared(barrier, 8));
  if (value.pending < count) throw Fault("more arrivals at a barrier than it was begun with");
  value.pending -= count;
  complete(barrier, value);
}

void AsyncUnits::expect(std::uint64_t barrier, std::int32_t bytes) {
  auto value = Barrier::load(block_.shared(barrier, 8));
  value.bytes += bytes;
  if (bytes < 0 || value.bytes > static_cast<std::int64_t>(kMostBytes)) {
    throw Fault("a barrier cannot expect so many bytes");
  }
  value.store(block_.shared(barrier, 8));
}

bool AsyncUnits::is_over(std::uint64_t barrier, bool parity) {
  const auto over = [&] { return Barrier::load(block_.shared(barrier, 8)).phase != parity; };
  if (over()) return true;
  for (auto box = boxes_.begin(); box != boxes_.end();) {
    if (box->barrier != barrier) {
      ++box;
      continue;
    }
    deliver(*box);
    box = boxes_.erase(box);
  }
  return over();
}

AsyncUnits::Warpgroup& AsyncUnits::group_of(const Warp& warp) {
  return groups_[warp.index() / kWarpgroup];
}

void AsyncUnits::start_product(Warp& warp, Product product,
                               const std::vector<std::uint32_t*>& sums) {
  auto& group = group_of(warp);
  const auto member = static_cast<std::size_t>(warp.index() % kWarpgroup);
  const auto number = warp.products_begun++;
  if (number == group.products.size()) {
    std::vector<float> a, b;
    read_operands(product, a, b);
    product.operands = hash_of(a, b);
    group.products.push_back(product);
  }
  auto& joined = group.products[number];
  if (joined.a != product.a || joined.b != product.b || joined.sums != product.sums ||
      joined.adds != product.adds) {
    throw Fault("the warps of a warpgroup ask for different products");
  }
  ++joined.joined;
  auto& flight = group.flights[product.sums];
  flight.last[member] = number;
  if (!flight.registers[member].empty()) return;
  flight.registers[member] = sums;
  auto& values = flight.sums[member];
  for (auto* lanes : sums) {
    for (int lane = 0; lane < kLanes; ++lane) values.push_back(std::bit_cast<float>(lanes[lane]));
    spoil(reinterpret_cast<std::byte*>(lanes), kLanes * sizeof(float));
  }
}

void AsyncUnits::commit_products(Warp& warp) {
  auto& group = group_of(warp);
  const auto number = warp.groups_begun++;
  if (number == group.group_ends.size()) group.group_ends.push_back(warp.products_begun);
  if (group.group_ends[number] != warp.products_begun) {
    throw Fault("the warps of a warpgroup commit different groups of products");
  }
}

bool AsyncUnits::wait_for_products(Warp& warp, std::size_t pending) {
  if (warp.groups_begun <= pending) return true;
  auto& group = group_of(warp);
  const auto end = group.group_ends[warp.groups_begun - pending - 1];
  for (std::size_t i = 0; i < end; ++i) {
    auto& product = group.products[i];
    if (product.done) continue;
    if (product.joined < kWarpgroup) return false;
    execute(group, product);
    block_.progress();
  }
  give_sums_back(group, warp, end);
  return true;
}

void AsyncUnits::read_operands(const Product& product, std::vector<float>& a,
                               std::vector<float>& b) {
  const auto read = [&](std::uint64_t descriptor, int rows, std::vector<float>& values) {
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < 16; ++k) {
        const auto address = product.depth_outside ? turned_address(descriptor, row, k)
                                                   : operand_address(descriptor, row, k);
        values.push_back(from_bf16(block_.shared(address, 2)));
      }
    }
  };
  read(product.a, 64, a);
  read(product.b, product.columns, b);
}

/// For each eight columns, lane l of warp w holds the same elements as lane l of mma.sync.m16n8k16
/// for the rows from 16 w on. The sums are one chain over k, as the emulation's.
void AsyncUnits::execute(Warpgroup& group, Product& product) {
  std::vector<float> a, b;
  read_operands(product, a, b);
  if (hash_of(a, b) != product.operands) {
    throw Fault("shared memory that a product reads changed between its start and its wait");
  }
  set_float_control(kRoundToNearest | kFlush);
  auto& flight = group.flights.at(product.sums);
  for (int warp = 0; warp < kWarpgroup; ++warp) {
    auto& sums = flight.sums[static_cast<std::size_t>(warp)];
    for (int i = 0; i < product.columns / 2; ++i) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const int row = 16 * warp + lane / 4 + i / 2 % 2 * 8;
        const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        auto& sum = sums[static_cast<std::size_t>(i * kLanes + lane)];
        float value = product.adds ? sum : 0;
        for (int k = 0; k < 16; ++k) {
          value = std::fma(a[static_cast<std::size_t>(row * 16 + k)],
                           b[static_cast<std::size_t>(column * 16 + k)], value);
        }
        sum = value;
      }
    }
  }
  product.done = true;
}

/// Returns to products before `done` the registers of one warp that no later product uses.
void AsyncUnits::give_sums_back(Warpgroup& group, Warp& warp, std::size_t done) {
  const auto member = static_cast<std::size_t>(warp.index() % kWarpgroup);
  for (auto& [place, flight] : group.flights) {
    auto& registers = flight.registers[member];
    if (registers.empty() || flight.last[member] >= done) continue;
    for (std::size_t i = 0; i < registers.size(); ++i) {
      std::memcpy(registers[i], flight.sums[member].data() + i * kLanes, kLanes * sizeof(float));
    }
    registers.clear();
    flight.sums[member].clear();
  }
}

}  // namespace triptych::ptx
