// A collective as data: the actions of one rank, step by step. The same list is executed on any
// transport (comm/), priced, drawn and proved right (symbolic.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/range.h"

namespace triptych::parallel {

/// Part `part` of `parts` of a range. All are equal, except that the first ones are one element
/// longer where the range does not divide. The cuts depend on numbers of elements alone.
Range part_of(const Range& range, std::int64_t part, std::int64_t parts);

/// Memory that a step works on: the buffer of the collective, or working space of the schedule's
/// own.
enum class Memory : std::uint8_t { Data, Scratch };

struct BufferRange {
  Memory memory = Memory::Data;
  Range range;

  bool overlaps(const BufferRange& other) const {
    return memory == other.memory && range.overlaps(other.range);
  }
  bool operator==(const BufferRange&) const = default;
};

/// Steps of a rank run in order. The n-th send of rank a to rank b belongs to b's n-th receive from
/// a. A send does not wait for its receiver, and its data are read no later than the end of the
/// Wait for it.
struct ScheduleStep {
  enum class Kind : std::uint8_t {
    Send,        ///< offers `place` to `peer`
    Receive,     ///< place = message of `peer`
    ReceiveAdd,  ///< place = place + message of `peer`
    Copy,        ///< place = source
    Add,         ///< place = place + source
    Wait,        ///< until `peer` has received the data of this rank's step number `send`
  };
  Kind kind = Kind::Send;
  int peer = -1;  ///< of Send, Receive, ReceiveAdd, Wait
  int send = -1;  ///< of Wait
  BufferRange place;
  BufferRange source;  ///< of Copy and Add, with as many elements as `place`

  bool operator==(const ScheduleStep&) const = default;
};

struct Schedule {
  std::vector<ScheduleStep> steps;
  std::int64_t scratch_elements = 0;
};

/// Builds a schedule. It knows the pending sends, and waits for those that a step would overwrite.
/// Steps without elements are left out, equally on both sides.
class ScheduleBuilder {
 public:
  void send(int peer, const BufferRange& place);
  void receive(int peer, const BufferRange& place);
  void receive_add(int peer, const BufferRange& place);
  void copy(const BufferRange& place, const BufferRange& source);
  void add(const BufferRange& place, const BufferRange& source);
  /// Waits until all messages have been received, so that the next ones have the links for
  /// themselves.
  void wait_for_sends();
  /// Waits for the sends that are left.
  Schedule finish();

 private:
  void write(const ScheduleStep& step);

  Schedule schedule_;
  std::vector<int> unread_sends_;  // numbers of steps
};

}  // namespace triptych::parallel
