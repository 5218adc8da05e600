// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/schedule.h"

#include <algorithm>

namespace triptych::parallel {

Range part_of(const Range& range, std::int64_t part, std::int64_t parts) {
  const std::int64_t each = range.size() / parts, longer = range.size() % parts;
  const std::int64_t begin = range.begin + part * each + std::min(part, longer);
  return {begin, begin + each + (part < longer ? 1 : 0)};
}

void ScheduleBuilder::send(int peer, const BufferRange& place) {
  if (place.range.size() == 0) return;
  unread_sends_.push_back(static_cast<int>(schedule_.steps.size()));
  schedule_.steps.push_back({.kind = ScheduleStep::Kind::Send, .peer = peer, .place = place});
}

void ScheduleBuilder::receive(int peer, const BufferRange& place) {
  write({.kind = ScheduleStep::Kind::Receive, .peer = peer, .place = place});
}

void ScheduleBuilder::receive_add(int peer, const BufferRange& place) {
  write({.kind = ScheduleStep::Kind::ReceiveAdd, .peer = peer, .place = place});
}

void ScheduleBuilder::copy(const BufferRange& place, const BufferRange& source) {
  write({.kind = ScheduleStep::Kind::Copy, .place = place, .source = source});
}

void ScheduleBuilder::add(const BufferRange& place, const BufferRange& source) {
  write({.kind = ScheduleStep::Kind::Add, .place = place, .source = source});
}

void ScheduleBuilder::write(const ScheduleStep& step) {
  if (step.place.range.size() == 0) return;
  std::erase_if(unread_sends_, [&](int send) {
    const ScheduleStep sent = schedule_.steps[static_cast<std::size_t>(send)];
    if (!sent.place.overlaps(step.place)) return false;
    schedule_.steps.push_back({.kind = ScheduleStep::Kind::Wait, .peer = sent.peer, .send = send});
    return true;
  });
  if (step.place.memory == Memory::Scratch) {
    schedule_.scratch_elements = std::max(schedule_.scratch_elements, step.place.range.end);
  }
  schedule_.steps.push_back(step);
}

void ScheduleBuilder::wait_for_sends() {
  for (const int send : unread_sends_) {
    const int peer = schedule_.steps[static_cast<std::size_t>(send)].peer;
    schedule_.steps.push_back({.kind = ScheduleStep::Kind::Wait, .peer = peer, .send = send});
  }
  unread_sends_.clear();
}

Schedule ScheduleBuilder::finish() {
  wait_for_sends();
  return std::move(schedule_);
}

}  // namespace triptych::parallel
