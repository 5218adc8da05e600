// Calls of kernels' libraries, as acts of the running thread on the Watch that it has entered.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <utility>

#include "backends/cuda/emulation/lockstep.h"
#include "backends/cuda/emulation/request_watcher.h"
#include "backends/cuda/plain/late_copies.h"
#include "backends/cuda/plain/signals.h"
#include "backends/cuda/plain/watch.h"

namespace triptych::cuda::plain {
namespace {

using emulation::Block;
using emulation::KnownCode;
using emulation::Location;
using emulation::Recorder;

/// False: the block only runs (RequestWatcher::observes).
bool is_observed() { return emulation::current_recorder != nullptr; }

/// An access of a block that only runs. A thread that waits for another one must let it run.
void run_unobserved(Touch how, const void* address) {
  if (how == Touch::Load || how == Touch::Store || how == Touch::AtomicWrite) return;
  Block& block = Block::current();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  block.step(block.last_place(), how == Touch::VolatileStore ? 0 : at);
}

bool on_stack(std::uintptr_t address) {
  const auto stack = Block::current().stack();
  return address - reinterpret_cast<std::uintptr_t>(stack.data()) < stack.size();
}

/// The instruction before `pc`.
KnownCode& code_at(const void* pc) {
  auto& recorder = Recorder::current();
  if (auto* known = recorder.known_code(pc)) return *known;
  const auto& library = current_watch->library();
  return recorder.add_code({pc, library.place(pc), library.is_own(pc)});
}

void touch(Touch how, const void* address, std::size_t bytes, const void* pc) {
  if (!is_observed()) return run_unobserved(how, address);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (on_stack(at)) return;
  auto& known = code_at(pc);
  if (known.code.where.line() != 0) {
    return current_watch->access(how, at, bytes, known.code.where, known);
  }
  current_watch->access(how, at, bytes, Block::current().last_place());
}

void touch_at(Touch how, const void* address, std::size_t bytes, const Location& where) {
  if (!is_observed()) return run_unobserved(how, address);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (!on_stack(at)) current_watch->access(how, at, bytes, where);
}

/// A type's copy, in the pieces that its alignment allows.
void touch_pieces(Touch how, const void* address, std::size_t bytes, std::size_t most,
                  const void* pc) {
  if (!is_observed()) return run_unobserved(how, address);
  if (on_stack(reinterpret_cast<std::uintptr_t>(address))) return;
  const auto piece = current_watch->library().piece_bytes(pc, bytes, most);
  for (std::size_t at = 0; at < bytes; at += piece) {
    touch(how, static_cast<const char*>(address) + at, piece, pc);
  }
}

void pass(const void* pc, const void* frame, const void* caller) {
  Block& block = Block::current();
  if (!is_observed()) {
    if (!block.pass_at_once(nullptr)) block.pass(block.last_place());
    return;
  }
  auto& recorder = Recorder::current();
  if (recorder.follow(pc, frame, caller)) return;
  const auto piece = emulation::piece_of_code(pc, frame, caller);
  const auto& code = code_at(pc).code;
  const auto depth = block.depth_of(frame);
  if (code.is_own) return recorder.pass(piece, code, {pc, caller, depth, &code.where});
  recorder.pass(piece, {pc, block.last_place(), false}, {pc, caller, depth, nullptr});
}

void line(const void* pc, const void* frame, const void* stack, const void* caller) {
  const auto& library = current_watch->library();
  if (is_observed() && library.is_own(pc))
    Recorder::current().begin_line({pc, frame, stack, caller}, library.place(pc));
}

Location place_of(const void* pc) {
  const auto where = current_watch->library().place(pc);
  return where.line() == 0 ? Block::current().last_place() : where;
}

void beyond(const void* pc, const char* array, std::int64_t index) {
  Block::current().fail(FaultKind::OutOfBounds, current_watch->library().place(pc),
                        fmt::format("index {} of an array {}", index, array));
}

void fail(const char* what, const Location& where) {
  Block::current().fail(FaultKind::Assertion, where, what);
}

void refuse(const char* what, const void* pc) {
  Block::current().fail(FaultKind::Assertion, place_of(pc), what);
}

void* allocate(std::size_t bytes, const void* pc) {
  return current_watch->allocate(bytes, place_of(pc));
}

void release(void* memory, const void* pc) { current_watch->release(memory, place_of(pc)); }

void grid_barrier(const Location& where) { Block::current().grid_barrier(where); }

bool is_cooperative() { return Block::current().is_resident(); }

Indices indices() {
  return {emulation::threadIdx, emulation::blockIdx, emulation::blockDim, emulation::gridDim};
}

/// Each thread of a kernel asks for several.
std::uint32_t index(unsigned which) {
  static_assert(kThreadIndex == 0 && kBlockIndex == 3 && kBlockSize == 6 && kGridSize == 9);
  const auto part = [](const emulation::Dim3& of, unsigned number) {
    return number == 0 ? of.x : number == 1 ? of.y : of.z;
  };
  if (which < kBlockIndex) return part(emulation::threadIdx, which);
  if (which < kBlockSize) return part(emulation::blockIdx, which - kBlockIndex);
  if (which < kGridSize) return part(emulation::blockDim, which - kBlockSize);
  return part(emulation::gridDim, which - kGridSize);
}

void poll(const void* address, const void* pc) {
  Block::current().poll(address);
  if (is_time_over()) fail_as_endless(place_of(pc));
}

void fence(const Location& where, bool for_all_blocks) {
  if (!is_observed()) return Block::current().pass(where);
  Recorder::current().fence(where, for_all_blocks);
}

void read_texture(const TextureRead& read, std::uint32_t* channels, const Location& where) {
  current_watch->read_texture(read, channels, where);
}

void* find_in_surface(const SurfaceAccess& access, const Location& where) {
  return current_watch->find_in_surface(access, where);
}

}  // namespace

const Services& watch_services() {
  static const Services services = {
      .touch = touch,
      .touch_at = touch_at,
      .touch_pieces = touch_pieces,
      .pass = pass,
      .line = line,
      .poll = poll,
      .beyond = beyond,
      .fail = fail,
      .refuse = refuse,
      .barrier = emulation::barrier,
      .grid_barrier = grid_barrier,
      .is_cooperative = is_cooperative,
      .allocate = allocate,
      .release = release,
      .copy_late = copy_late,
      .commit_copies = commit_late_copies,
      .await_copies = await_late_copies,
      .exchange = emulation::exchange,
      .exchanged = emulation::exchanged,
      .lane_index = emulation::lane_index,
      .indices = indices,
      .index = index,
      .fence = fence,
      .read_texture = read_texture,
      .find_in_surface = find_in_surface,
  };
  return services;
}

}  // namespace triptych::cuda::plain
