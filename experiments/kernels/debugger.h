// Walks through the recorded lines of a warp: breakpoints, steps, and the lanes at each stop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/plain/line_trace.h"
#include "experiments/kernels/debug_value.h"

namespace triptych::kernels {

/// The lanes of `mask` begin a line of source.
struct DebugStop {
  std::size_t step = 0;  ///< of the trace
  std::uint32_t mask = 0;
  std::string file;
  unsigned line = 0;
  std::size_t depth = 0;  ///< calls between the kernel and the function
};

struct DebugLane {
  enum class State : std::uint8_t { Active, Waiting, Ended };
  State state = State::Ended;
  const cuda::plain::LaneEvent* event = nullptr;  ///< of an ended one: its last. nullptr: none
};

class Debugger {
 public:
  explicit Debugger(const cuda::plain::LineTrace& trace);

  /// "12" or "my.cu:12". Throws InvalidArgument for a file and a line without code.
  void add_breakpoint(const std::string& text);

  /// Goes on to the next breakpoint. False, as below: the warp has no further one, and the position
  /// is behind its last line.
  bool resume();
  /// Goes to the next line.
  bool step();
  /// Goes to the next line without stopping in functions that this one calls.
  bool next();
  /// Goes to the previous line. False: this is the first one.
  bool back();

  bool at_end() const { return at_ >= stops_.size(); }
  /// The number of lines until here.
  std::size_t position() const { return at_; }
  const DebugStop& here() const { return stops_[at_]; }
  const std::vector<DebugStop>& stops() const { return stops_; }
  /// At this stop, or at the end.
  DebugLane lane(unsigned number) const;
  /// The lane must have an event.
  LaneView view(unsigned number) const;
  const cuda::plain::LineTrace& trace() const { return trace_; }

 private:
  struct Breakpoint {
    std::string file;
    unsigned line = 0;
  };

  bool is_breakpoint(const DebugStop& stop) const;

  const cuda::plain::LineTrace& trace_;
  std::vector<DebugStop> stops_;
  std::vector<Breakpoint> breakpoints_;
  std::size_t at_ = 0;
  bool has_begun_ = false;  ///< it has stopped at a line
};

}  // namespace triptych::kernels
