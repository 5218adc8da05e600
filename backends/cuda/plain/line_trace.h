// The lines of source that one warp of a launch runs, in the order in which a GPU issues them, with
// the variables of each lane and the memory that it sees.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulation/request_watcher.h"
#include "backends/cuda/plain/kernel_library.h"
#include "backends/cuda/plain/launch.h"

namespace triptych::cuda::plain {

/// A warp of a launch.
struct WarpChoice {
  emulation::Dim3 block = {0, 0, 0};
  unsigned warp = 0;
};

/// The beginning of a line in the compiled code.
struct CodeLine {
  struct Variable {
    const DebugVariable* variable = nullptr;
    std::size_t at = 0, bytes = 0;  ///< of a lane's recorded values
  };
  std::string file;
  unsigned line = 0;
  std::uint64_t address = 0;  ///< in the library's file
  const DebugFunction* function = nullptr;
  std::vector<Variable> variables;  ///< visible here
  std::size_t bytes = 0;            ///< of all their values
};

/// A lane begins a line.
struct LaneEvent {
  const CodeLine* line = nullptr;
  std::size_t values = 0;   ///< place of its recorded values
  std::uint32_t calls = 0;  ///< number of its call stack
};

/// The lanes of `mask` begin a line together.
struct WarpStep {
  std::uint32_t mask = 0;
  /// By lane, the number of its next event: of one of `mask` the line that it begins, of another
  /// one the line at which it waits, or behind its last event.
  std::array<std::uint32_t, 32> next{};
};

/// Runs of one thread of the processor only.
class LineTrace : public emulation::RequestWatcher {
 public:
  LineTrace(const KernelLibrary& library, const Launch& launch, const WarpChoice& choice);

  void asked(const emulation::RequestPlace& place, const emulation::Request& request) override;
  void passed(const emulation::PiecePlace& place, std::uint32_t mask) override;
  bool begins_line(const emulation::LineBegin& line) override;
  void writes(const void* address, std::size_t bytes) override;

  /// The launch has ended. The functions below follow this one.
  void finish();

  unsigned lanes() const { return lanes_; }
  const WarpChoice& choice() const { return choice_; }
  const emulation::Dim3& block_dim() const { return block_dim_; }
  const emulation::Dim3& grid_dim() const { return grid_dim_; }
  const std::string& kernel() const { return kernel_; }
  const std::vector<WarpStep>& steps() const { return steps_; }
  const std::vector<LaneEvent>& events(unsigned lane) const { return events_[lane]; }
  /// The functions that an event's function was called from: their lines, the last call first.
  std::vector<emulation::Location> calls(const LaneEvent& event) const;
  std::size_t depth(const LaneEvent& event) const { return stacks_[event.calls].size(); }
  std::span<const std::byte> value(unsigned lane, const LaneEvent& event,
                                   const CodeLine::Variable& variable) const;
  /// False for a variable that the line itself declares.
  bool is_declared(const CodeLine& line, const DebugVariable& variable) const;
  /// Bytes of shared or global memory before a step of the warp. Nothing: none is at this address.
  std::optional<std::vector<std::byte>> memory(std::uint64_t address, std::uint64_t bytes,
                                               std::size_t step) const;
  /// Atomic operations of the block change some of these bytes. Their results follow the order in
  /// which the emulator runs the lanes.
  bool has_atomics(std::uint64_t address, std::uint64_t bytes) const;
  /// Address of a variable that is not of a function. 0: there is none.
  std::uint64_t address_of(const DebugVariable& variable) const;
  /// The array at an address and the bytes from its begin. Empty: none.
  std::pair<std::string, std::uint64_t> array_at(std::uint64_t address) const;
  /// The warp ran more lines than are recorded.
  bool is_cut() const { return is_cut_; }

  const DebugInfo& info() const { return info_; }
  const CodePlaces& places() const { return library_.places(); }

 private:
  struct Region {
    std::string name;
    std::uint64_t begin = 0;
    std::vector<std::byte> content;  ///< when the block began
  };
  struct Store {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0, lane = 0, event = 0;
    std::size_t step = 0;  ///< of the warp: 0 for one before its first step, else plus 1
    std::array<std::byte, 16> value{};
  };

  bool is_chosen_block() const;
  bool is_full(unsigned lane) const;
  void begin_block();
  void add_region(std::string name, std::span<const std::byte> memory);
  void settle();
  const CodeLine* line_at(const void* pc);
  std::uint32_t stack_of(const emulation::LineBegin& line);

  const KernelLibrary& library_;
  const DebugInfo info_;
  std::string kernel_;
  WarpChoice choice_;
  emulation::Dim3 block_dim_, grid_dim_;
  unsigned lanes_ = 0;
  std::vector<DeviceArray> arrays_;

  std::unordered_map<const void*, CodeLine> lines_;
  std::map<std::vector<const void*>, std::uint32_t> stack_numbers_;
  std::vector<std::vector<const void*>> stacks_;
  std::array<std::vector<LaneEvent>, 32> events_;
  std::array<std::vector<std::byte>, 32> values_;
  std::array<std::vector<std::size_t>, 32> issued_;  ///< step of each event
  std::array<std::uint32_t, 32> next_{};
  std::vector<WarpStep> steps_;

  std::vector<Region> regions_;
  std::uint64_t shared_begin_ = 0;
  std::vector<Store> stores_;
  std::set<std::uint64_t> atomics_;  ///< first byte of each atomic operation
  std::optional<Store> pending_;     ///< it happens after the report
  std::uint32_t last_lane_ = 0;      ///< that began a line
  bool has_begun_ = false, is_cut_ = false;
};

}  // namespace triptych::cuda::plain
