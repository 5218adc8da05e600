// The address generator's two walks, over positions and over taps ("Address generation" in
// docs/reference/mmu.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

struct Position {
  std::int16_t y, x;
  std::uint32_t address;
};

class PositionWalk {
 public:
  PositionWalk(const SetStream& geometry, const Matmul& start)
      : geometry_(geometry),
        position_{static_cast<std::int16_t>(start.y), static_cast<std::int16_t>(start.x),
                  static_cast<std::uint32_t>(start.address)},
        rows_left_(start.rows_left),
        columns_left_(start.columns_left) {}

  const Position& position() const { return position_; }
  void next() {
    if (columns_left_ > 1) {
      --columns_left_;
      move(geometry_.step_x);
      position_.x = static_cast<std::int16_t>(position_.x + geometry_.stride_x);
      return;
    }
    columns_left_ = geometry_.out_width;
    position_.x = static_cast<std::int16_t>(geometry_.restart_x);
    if (rows_left_ > 1) {
      --rows_left_;
      move(geometry_.wrap_y);
      position_.y = static_cast<std::int16_t>(position_.y + geometry_.stride_y);
    } else {
      rows_left_ = geometry_.out_height;
      move(geometry_.wrap_n);
      position_.y = static_cast<std::int16_t>(geometry_.restart_y);
    }
  }

 private:
  void move(std::int32_t step) { position_.address += static_cast<std::uint32_t>(step); }

  const SetStream& geometry_;
  Position position_;
  std::uint32_t rows_left_, columns_left_;
};

struct Tap {
  std::int16_t dy, dx;
  std::uint32_t offset;
  bool operator==(const Tap&) const = default;
};

class TapWalk {
 public:
  TapWalk(const SetTaps& geometry, const Matmul& start, const MachineConfig& machine)
      : geometry_(geometry),
        group_(machine.group(geometry.log2_group)),
        in_group_(start.channel % group_),
        tap_{static_cast<std::int16_t>(start.dy), static_cast<std::int16_t>(start.dx),
             static_cast<std::uint32_t>(start.offset)},
        channel_(start.channel),
        kernel_x_(start.kernel_x) {}

  const Tap& tap() const { return tap_; }
  void next() {
    if (channel_ + 1 < geometry_.channels) {
      ++channel_;
      if (++in_group_ == group_) {
        in_group_ = 0;
        ++tap_.offset;
      }
      return;
    }
    channel_ = in_group_ = 0;
    if (kernel_x_ + 1 < geometry_.kernel_width) {
      ++kernel_x_;
      tap_.dx = static_cast<std::int16_t>(tap_.dx + geometry_.step_dx);
      tap_.offset += static_cast<std::uint32_t>(geometry_.jump_x);
    } else {
      kernel_x_ = 0;
      tap_.dx = static_cast<std::int16_t>(geometry_.restart_dx);
      tap_.dy = static_cast<std::int16_t>(tap_.dy + geometry_.step_dy);
      tap_.offset += static_cast<std::uint32_t>(geometry_.jump_y);
    }
  }

 private:
  const SetTaps& geometry_;
  std::uint32_t group_, in_group_;  ///< the channel is so far within its group
  Tap tap_;
  std::uint32_t channel_, kernel_x_;
};

/// True when the input element under this tap of this position is real, not padding.
inline bool inside(const SetStream& geometry, const Position& position, const Tap& tap) {
  const int y = position.y + tap.dy;
  const int x = position.x + tap.dx;
  return static_cast<std::uint32_t>(y) < geometry.in_height &&
         static_cast<std::uint32_t>(x) < geometry.in_width;
}

}  // namespace triptych::mmu
