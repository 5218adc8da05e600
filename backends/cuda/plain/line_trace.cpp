// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/line_trace.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace triptych::cuda::plain {
namespace {

using emulation::Block;

constexpr std::size_t kMostBytes = std::size_t{16} << 20;        // of a lane's record
constexpr std::size_t kMostArrayBytes = std::size_t{512} << 20;  // of an array that is copied
constexpr std::size_t kMostCalls = 64;
constexpr std::uint32_t kNoEvent = ~0U;

bool is_same(const emulation::Dim3& a, const emulation::Dim3& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

std::uint64_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

LineTrace::LineTrace(const KernelLibrary& library, const Launch& launch, const WarpChoice& choice)
    : library_(library),
      info_(library.debug_info()),
      kernel_(launch.kernel),
      choice_(choice),
      block_dim_(launch.shape.block),
      grid_dim_(launch.shape.grid),
      arrays_(launch.arrays) {
  const auto threads = block_dim_.count(), first = std::uint64_t{choice.warp} * emulation::kWarp;
  lanes_ = first >= threads
               ? 0
               : static_cast<unsigned>(std::min<std::uint64_t>(emulation::kWarp, threads - first));
}

bool LineTrace::is_chosen_block() const { return is_same(emulation::blockIdx, choice_.block); }

bool LineTrace::is_full(unsigned lane) const {
  return values_[lane].size() + events_[lane].size() * sizeof(LaneEvent) > kMostBytes;
}

void LineTrace::add_region(std::string name, std::span<const std::byte> memory) {
  if (memory.size() > kMostArrayBytes) return;
  regions_.push_back({std::move(name), number_of(memory.data()), {memory.begin(), memory.end()}});
}

void LineTrace::begin_block() {
  if (std::exchange(has_begun_, true)) return;
  for (const auto& array : arrays_) add_region(array.name, {array.data, array.bytes});
  for (const auto list : {library_.global_variables(), library_.constant_variables()}) {
    for (const auto& variable : list) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
      const auto* begin = reinterpret_cast<const std::byte*>(variable.begin);
      add_region(variable.name, {begin, variable.bytes});
    }
  }
  const auto shared = Block::current().shared();
  shared_begin_ = number_of(shared.data());
  for (const auto& variable : library_.shared_variables()) {
    if (variable.begin + variable.bytes > shared.size()) continue;
    add_region(variable.name, shared.subspan(variable.begin, variable.bytes));
  }
  const auto fixed = library_.fixed_shared_bytes();
  if (fixed < shared.size()) add_region("the launch's shared memory", shared.subspan(fixed));
}

/// The line's variables, and the places of their values in a record.
const CodeLine* LineTrace::line_at(const void* pc) {
  const auto [found, is_new] = lines_.try_emplace(pc);
  CodeLine& line = found->second;
  if (!is_new) return &line;
  const auto where = library_.place(pc);
  line.file = where.file_name();
  line.line = where.line();
  line.address = number_of(pc) - library_.base();
  line.function = info_.function_at(line.address - 1);
  if (line.function == nullptr) return &line;
  for (const auto& variable : line.function->variables) {
    using enum DebugVariable::Base;
    const bool is_local = variable.base == FramePointer || variable.base == StackPointer;
    if (!variable.is_visible(line.address)) continue;
    std::erase_if(line.variables,
                  [&](const auto& outer) { return outer.variable->name == variable.name; });
    line.variables.push_back({&variable, 0, is_local ? info_.types[variable.type].bytes : 0});
  }
  for (auto& variable : line.variables) {
    variable.at = line.bytes;
    line.bytes += variable.bytes;
  }
  return &line;
}

std::uint32_t LineTrace::stack_of(const emulation::LineBegin& line) {
  std::vector<const void*> calls;
  const auto stack = Block::current().stack();
  const auto* frame = static_cast<const void* const*>(line.frame);
  while (calls.size() < kMostCalls) {
    const auto offset = number_of(frame) - number_of(stack.data());
    if (offset + 2 * sizeof(void*) > stack.size()) break;
    const void* const caller = frame[1];
    if (info_.function_at(number_of(caller) - library_.base() - 1) == nullptr ||
        !library_.is_own(caller)) {
      break;
    }
    calls.push_back(caller);
    frame = static_cast<const void* const*>(frame[0]);
  }
  const auto number = static_cast<std::uint32_t>(stacks_.size());
  const auto [found, is_new] = stack_numbers_.try_emplace(calls, number);
  if (is_new) stacks_.push_back(std::move(calls));
  return found->second;
}

bool LineTrace::begins_line(const emulation::LineBegin& begin) {
  settle();
  if (!is_chosen_block()) return false;
  begin_block();
  const auto thread = Block::current().thread(), lane = thread % emulation::kWarp;
  if (thread / emulation::kWarp != choice_.warp) return false;
  if (is_full(lane)) is_cut_ = true;
  if (is_full(lane)) return false;
  const auto* line = line_at(begin.pc);
  auto& values = values_[lane];
  events_[lane].push_back({line, values.size(), stack_of(begin)});
  last_lane_ = lane;
  const auto at = values.size();
  values.resize(at + line->bytes);
  for (const auto& [variable, offset, bytes] : line->variables) {
    if (bytes == 0) continue;
    const auto* base = static_cast<const std::byte*>(
        variable->base == DebugVariable::Base::StackPointer ? begin.stack : begin.frame);
    std::memcpy(values.data() + at + offset, base + variable->offset, bytes);
  }
  return true;
}

void LineTrace::passed(const emulation::PiecePlace& place, std::uint32_t mask) {
  if (!is_same(place.block, choice_.block) || place.warp != choice_.warp) return;
  settle();
  if (!lines_.contains(place.code.pc)) return;
  const auto step = steps_.size();
  steps_.push_back({mask, next_});
  for (unsigned lane = 0; lane < emulation::kWarp; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    issued_[lane].push_back(step);
    ++next_[lane];
  }
}

void LineTrace::asked(const emulation::RequestPlace& place, const emulation::Request& request) {
  if (place.access != emulation::Access::Atomic || !is_same(place.block, choice_.block)) return;
  const auto begin = place.space == emulation::Space::Shared ? shared_begin_ : 0;
  for (unsigned lane = 0; lane < emulation::kWarp; ++lane) {
    if ((request.mask >> lane & 1U) != 0) atomics_.insert(begin + request.addresses[lane]);
  }
}

bool LineTrace::has_atomics(std::uint64_t address, std::uint64_t bytes) const {
  const auto first = atomics_.lower_bound(address);
  return first != atomics_.end() && *first - address < bytes;
}

void LineTrace::writes(const void* address, std::size_t bytes) {
  settle();
  if (!is_chosen_block()) return;
  begin_block();
  const auto thread = Block::current().thread();
  const auto lane =
      thread / emulation::kWarp == choice_.warp ? thread % emulation::kWarp : last_lane_;
  if (is_full(lane)) return;
  const auto events = static_cast<std::uint32_t>(events_[lane].size());
  Store store = {.address = number_of(address), .lane = lane, .event = kNoEvent};
  store.bytes = static_cast<std::uint32_t>(std::min(bytes, store.value.size()));
  if (events > 0) store.event = events - 1;
  pending_ = store;
}

/// Records the value of the last store, which has happened.
void LineTrace::settle() {
  if (!pending_) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that a kernel wrote to
  std::memcpy(pending_->value.data(), reinterpret_cast<const void*>(pending_->address),
              pending_->bytes);
  stores_.push_back(*std::exchange(pending_, std::nullopt));
}

void LineTrace::finish() {
  pending_.reset();  // of another warp: its memory may be gone
  for (auto& store : stores_) {
    const auto& issued = issued_[store.lane];
    store.step = store.event == kNoEvent       ? 0
                 : store.event < issued.size() ? issued[store.event] + 1
                                               : steps_.size();
  }
  std::ranges::stable_sort(stores_, {}, &Store::step);
}

std::vector<emulation::Location> LineTrace::calls(const LaneEvent& event) const {
  std::vector<emulation::Location> places;
  for (const auto* pc : stacks_[event.calls]) places.push_back(library_.place(pc));
  return places;
}

std::span<const std::byte> LineTrace::value(unsigned lane, const LaneEvent& event,
                                            const CodeLine::Variable& variable) const {
  return std::span(values_[lane]).subspan(event.values + variable.at, variable.bytes);
}

/// The first code of its line is the declaration. A loop comes back to others.
bool LineTrace::is_declared(const CodeLine& line, const DebugVariable& variable) const {
  if (line.line != variable.line) return line.line > variable.line;
  return std::ranges::any_of(lines_, [&](const auto& entry) {
    const CodeLine& other = entry.second;
    return other.line == line.line && other.file == line.file && other.address < line.address &&
           variable.is_visible(other.address);
  });
}

std::optional<std::vector<std::byte>> LineTrace::memory(std::uint64_t address, std::uint64_t bytes,
                                                        std::size_t step) const {
  const auto region = std::ranges::find_if(regions_, [&](const Region& each) {
    return address - each.begin < each.content.size() &&
           bytes <= each.content.size() - (address - each.begin);
  });
  if (region == regions_.end()) return std::nullopt;
  const auto from = region->content.begin() + static_cast<std::ptrdiff_t>(address - region->begin);
  std::vector<std::byte> result(from, from + static_cast<std::ptrdiff_t>(bytes));
  for (const auto& store : stores_) {
    if (store.step > step) break;
    const auto begin = std::max(address, store.address),
               end = std::min(address + bytes, store.address + store.bytes);
    for (auto at = begin; at < end; ++at) result[at - address] = store.value[at - store.address];
  }
  return result;
}

std::uint64_t LineTrace::address_of(const DebugVariable& variable) const {
  const auto offset = static_cast<std::uint64_t>(variable.offset);
  switch (variable.base) {
    case DebugVariable::Base::Library:
      return library_.base() + offset;
    case DebugVariable::Base::SharedMemory:
      return shared_begin_ + offset;
    default:
      return 0;
  }
}

std::pair<std::string, std::uint64_t> LineTrace::array_at(std::uint64_t address) const {
  for (const auto& region : regions_) {
    const auto offset = address - region.begin;
    if (offset < region.content.size()) return {region.name, offset};
  }
  return {};
}

}  // namespace triptych::cuda::plain
