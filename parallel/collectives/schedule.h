// A collective as data: what one rank does, step by step. The same list is executed on any
// transport (comm/), priced, drawn and proved right (symbolic.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/range.h"

namespace triptych::parallel {

/// Part `part` of `parts` of a range, all equal but for the first ones, which are one element
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

/// Steps of a rank run in order. The n-th send of rank a to rank b is what b's n-th receive from a
/// takes. A send does not wait for its receiver, and what it sends is read no later than the Wait
/// for it ends.
struct ScheduleStep {
  enum class Kind : std::uint8_t {
    Send,        ///< offers `place` to `peer`
    Receive,     ///< place = what `peer` sent
    ReceiveAdd,  ///< place = place + what `peer` sent
    Copy,        ///< place = source
    Add,         ///< place = place + source
    Wait,        ///< until `peer` has taken what this rank's step number `send` sent
  };
  Kind kind = Kind::Send;
  int peer = -1;  ///< of Send, Receive, ReceiveAdd, Wait
  int send = -1;  ///< of Wait
  BufferRange place;
  BufferRange source;  ///< of Copy and Add; as many elements as `place`

  bool operator==(const ScheduleStep&) const = default;
};

struct Schedule {
  std::vector<ScheduleStep> steps;
  std::int64_t scratch_elements = 0;
};

/// Builds a schedule; knows which sends are still being read, and waits for those that a step would
/// overwrite. Steps without elements are left out, on both sides alike.
class ScheduleBuilder {
 public:
  void send(int peer, const BufferRange& place);
  void receive(int peer, const BufferRange& place);
  void receive_add(int peer, const BufferRange& place);
  void copy(const BufferRange& place, const BufferRange& source);
  void add(const BufferRange& place, const BufferRange& source);
  /// Waits until all that was sent is taken, so that what is sent next has the links for itself.
  void wait_for_sends();
  /// Waits for the sends that are left.
  Schedule finish();

 private:
  void write(const ScheduleStep& step);

  Schedule schedule_;
  std::vector<int> unread_sends_;  // numbers of steps
};

}  // namespace triptych::parallel
