// Form of every matrix product on the array: positions of an image tensor, each a vector of values
// (kernel row, kernel column, channel), and a stationary matrix.
//   forward:    result[position, column] is a chain over values
//               of stream x stationary[value, column]
//   transposed: result[value, column] is a chain over positions
//               of stream x stationary[position, column]
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/base/range.h"
#include "systolic/driver/driver.h"

namespace triptych::systolic {

/// Values as fields of instructions.
inline std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }
inline std::int32_t i32(std::int64_t value) { return static_cast<std::int32_t>(u32(value)); }

/// A group of channels as instructions name it.
inline std::uint32_t log2_group(std::int64_t group) { return u32(std::bit_width(u32(group) - 1)); }

/// One axis of an image: tap t of output position o reads input position o * stride + first + t *
/// step, zero outside the input.
struct StreamAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t taps = 1;
  std::int64_t stride = 1;
  std::int64_t first = 0;
  std::int64_t step = 1;

  /// Input positions inside the image that these outputs read. Size 0 when they read zeros only.
  Range reads(Range outputs) const;
  /// The same axis with tap `tap` alone.
  StreamAxis only(std::int64_t tap) const;
  bool is_pointwise() const { return taps == 1 && first == 0 && stride == 1 && in == out; }
  bool operator==(const StreamAxis&) const = default;
};

struct StreamProblem {
  bool transpose = false;
  std::int64_t images = 1;
  StreamAxis y, x;
  std::int64_t channels = 1;  ///< stored per position, a multiple of `group`
  std::int64_t group = 1;     ///< channels of one buffer row: R, or a power of two that divides it
  std::int64_t columns = 1;   ///< of the stationary matrix
  std::int64_t element_bytes = 2;  ///< of both operands: bf16 or int8
  std::int64_t result_bytes = 4;   ///< of a value

  std::int64_t positions() const { return images * y.out * x.out; }
  std::int64_t values() const { return y.taps * x.taps * channels; }
  std::int64_t stationary_rows() const { return transpose ? positions() : values(); }
  std::int64_t result_rows() const { return transpose ? values() : positions(); }
  bool is_pointwise() const { return y.is_pointwise() && x.is_pointwise(); }
  bool operator==(const StreamProblem&) const = default;
};

/// The problem with a pointwise stream's positions in one row: no border is ever tested.
StreamProblem flattened(StreamProblem problem);

/// The group's multiple not below `channels`.
std::int64_t padded_channels(std::int64_t channels, std::int64_t group);

/// A box of output positions with its input in the unified buffer at one time.
struct Box {
  Range images, y, x;
  std::int64_t positions() const { return images.size() * y.size() * x.size(); }
};

/// Values that are computed with one content of the buffer: some channels, of all taps or of one.
struct Slice {
  StreamProblem problem;         ///< its axes hold the slice's taps only
  Range channels;                ///< stored ones
  std::int64_t first_value = 0;  ///< of the whole problem

  std::int64_t values() const { return problem.y.taps * problem.x.taps * channels.size(); }
  /// A value of the slice as one of the whole problem.
  std::int64_t whole_value(std::int64_t value) const {
    return first_value + value / channels.size() * problem.channels + value % channels.size();
  }
};

/// How values are cut into slices. A forward stream, which has values in a chain, cuts channels
/// only within one tap.
struct Slicing {
  bool one_tap = false;
  std::int64_t channels = 0;  ///< at a time. 0: all

  bool operator==(const Slicing&) const = default;
};

/// The slices in ascending order of their first values.
std::vector<Slice> slices_of(const StreamProblem& problem, const Slicing& slicing);

/// How a box's input for one slice lies in the buffer from row 0 on, and how the address generator
/// walks over it.
class BoxView {
 public:
  BoxView(const Slice& slice, const Box& box);

  /// Input positions in the buffer, row by row of each image, and buffer rows of one.
  std::int64_t inputs() const { return rows() * x_.size(); }
  std::int64_t units() const { return slice_.channels.size() / slice_.problem.group; }
  /// How many inputs, from the first on, hold all that the first `positions` outputs read: whole
  /// rows, unless there is but one.
  std::int64_t inputs_for(std::int64_t positions) const;
  /// True when inputs lie at one distance from each other in DRAM.
  bool has_even_inputs() const { return rows() == 1 || x_.size() == slice_.problem.x.in; }
  /// The loads that fill these inputs (as inputs_for() counts them), these units of each, from an
  /// image tensor at this DRAM address: one slice of channels after the other, each
  /// [image][y][x][channel]. Less than all units need even inputs.
  std::vector<mmu::Load> loads(std::uint32_t address, Range inputs, Range units) const;
  mmu::SetStream stream() const;
  mmu::SetTaps taps() const;
  /// Sets where a matmul starts: at this output position of the box ...
  void start_at_position(std::int64_t position, mmu::Matmul& matmul) const;
  /// ... and at this value of the slice, a multiple of the array's rows.
  void start_at_value(std::int64_t value, mmu::Matmul& matmul) const;

 private:
  std::int64_t rows() const { return images_ * y_.size(); }
  std::int64_t pitch() const { return x_.size() * units(); }
  std::int64_t offset(std::int64_t y, std::int64_t x) const { return y * pitch() + x * units(); }

  const Slice& slice_;
  const Box& box_;
  std::int64_t images_;
  Range y_, x_;                   ///< of the input that is in the buffer
  std::int64_t zero_y_, zero_x_;  ///< input positions that the address generator calls 0
  bool pointwise_;
};

}  // namespace triptych::systolic
