// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/ptx/float_control.h"

namespace triptych::ptx {
namespace {

constexpr std::size_t kAlignment = 1024;  ///< of registers and shared memory
constexpr int kStepsInTurn = 1 << 16;     ///< after which another warp has its turn
constexpr int kIdleTurns = 1000;          ///< of all warps, after which nothing will happen
constexpr int kMostTurns = 1 << 20;       ///< of a block, after which it runs for ever
constexpr std::byte kUnwritten = std::byte{0xCB};
constexpr std::size_t kNobody = ~std::size_t{0};

std::byte* aligned(std::vector<std::byte>& memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + ((at + kAlignment - 1) / kAlignment * kAlignment - at);
}

std::string short_name(const std::string& name) {
  constexpr std::size_t kMost = 120;
  return name.size() <= kMost ? name : name.substr(0, kMost) + "...";
}

}  // namespace

Warp::Warp(Block& block, int index) : block_(block), index_(index) {
  const auto& program = block.launch().program;
  register_memory_.resize(program.register_bytes + kAlignment);
  registers_ = aligned(register_memory_);
  local_.resize(program.local_bytes * kLanes);
}

void Warp::begin() {
  const auto& launch = block_.launch();
  const auto& program = launch.program;
  constants_ = const_cast<std::byte*>(program.constants.data());  // no step writes there
  std::memset(registers_, static_cast<int>(kUnwritten), program.register_bytes);
  std::ranges::fill(local_, kUnwritten);
  for (auto& copies : copies_) copies.clear();
  state_ = State::Ready;
  parked_.clear();
  pc_ = 0;
  next_pc_ = kNobody;
  registers_per_thread = 0;
  products_fenced = false;
  products_begun = groups_begun = 0;

  const auto size = launch.block;
  const auto first = static_cast<std::uint64_t>(index_) * kLanes;
  const auto lanes = std::min<std::uint64_t>(kLanes, size.count() - first);
  live_ = mask_ = lanes == kLanes ? 0xFFFFFFFFU : (1U << lanes) - 1;
  auto* special = reinterpret_cast<std::uint32_t*>(registers_);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto thread = static_cast<std::uint32_t>(first) + lane;
    const std::uint32_t values[] = {thread % size.x,
                                    thread / size.x % size.y,
                                    thread / size.x / size.y,
                                    size.x,
                                    size.y,
                                    size.z,
                                    block_.index().x,
                                    block_.index().y,
                                    block_.index().z,
                                    launch.grid.x,
                                    launch.grid.y,
                                    launch.grid.z,
                                    lane,
                                    static_cast<std::uint32_t>(index_)};
    static_assert(std::size(values) == static_cast<std::size_t>(Special::Count));
    for (std::size_t i = 0; i < std::size(values); ++i) special[i * kLanes + lane] = values[i];
  }
}

int Warp::line() const { return block_.launch().program.lines[current_]; }

void Warp::run() {
  try {
    run_steps();
  } catch (const Fault& fault) {
    explain(fault.what());
  }
}

void Warp::run_steps() {
  const auto& program = block_.launch().program;
  gives_way_ = false;
  int left = kStepsInTurn;
  for (; left > 0 && state_ == State::Ready && !gives_way_; --left) {
    if ((mask_ == 0 || pc_ >= next_pc_) && !reschedule()) return;
    current_ = pc_;
    const Step& step = program.steps[pc_];
    std::uint32_t active = mask_;
    if (step.guarded) {
      active &= predicate(step.guard);
      if (active == 0) {
        ++pc_;
        continue;
      }
    }
    if (step.gathers != Gathers::Nobody && !gathered(step, active)) continue;
    ++program.runs[pc_];
    ++pc_;
    step.run(*this, step, active);
  }
  if (left == 0) block_.progress();
  if (gives_way_ && !parked_.empty() && mask_ != 0) {
    parked_.push_back({pc_, mask_, false, true});
    mask_ = 0;
  }
}

bool Warp::reschedule() {
  if (mask_ != 0) parked_.push_back({pc_, mask_, false, false});
  mask_ = 0;
  std::ranges::sort(parked_, {}, &Split::pc);
  for (std::size_t i = 0; i + 1 < parked_.size();) {
    if (parked_[i].pc != parked_[i + 1].pc) {
      ++i;
      continue;
    }
    parked_[i].mask |= parked_[i + 1].mask;
    parked_[i].waits = parked_[i].sleeps = false;
    parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  if (parked_.empty()) {
    state_ = State::Done;
    block_.progress();
    return false;
  }
  const auto can_run = [](const Split& split) { return !split.waits && !split.sleeps; };
  auto chosen = std::ranges::find_if(parked_, can_run);
  if (chosen == parked_.end()) {
    for (auto& split : parked_) split.sleeps = false;
    chosen = std::ranges::find_if(parked_, can_run);
  }
  if (chosen == parked_.end()) {
    current_ = parked_.front().pc;
    throw Fault("lanes wait for others of their warp, which wait elsewhere");
  }
  pc_ = chosen->pc;
  mask_ = chosen->mask;
  chosen = parked_.erase(chosen);
  next_pc_ = chosen == parked_.end() ? kNobody : chosen->pc;
  return true;
}

bool Warp::gathered(const Step& step, std::uint32_t active) {
  if (active != mask_) {  // the guard lets some lanes pass
    parked_.push_back({pc_ + 1, mask_ & ~active, false, false});
    mask_ = active;
    next_pc_ = std::min(next_pc_, pc_ + 1);
  }
  std::uint32_t needed = live_;
  if (step.gathers == Gathers::Members) {
    const auto* members = lanes<std::uint32_t>(step.at[4]);
    needed = members[std::countr_zero(active)];
    for_lanes(active, [&](int lane) {
      if (members[lane] != needed) throw Fault("lanes name different members");
    });
    if ((active & ~needed) != 0) throw Fault("a lane is none of the members that it names");
    needed &= live_;
  }
  if ((needed & ~active) == 0) return true;
  parked_.push_back({pc_, active, true, false});
  mask_ = 0;
  return false;
}

void Warp::branch(std::uint32_t mask, std::size_t target) {
  if (mask == mask_) {
    pc_ = target;
  } else {
    parked_.push_back({target, mask, false, false});
    mask_ &= ~mask;
  }
  if (!parked_.empty()) next_pc_ = 0;
}

void Warp::exit(std::uint32_t mask) {
  live_ &= ~mask;
  mask_ &= ~mask;
  // Those who wait for the lanes that are gone may go on.
  for (auto& split : parked_) split.waits = false;
}

void Warp::wait_at_barrier(int number) {
  state_ = State::AtBarrier;
  barrier_ = number;
}

std::uint64_t Warp::address_of(const Step& step, int lane, std::size_t place) {
  const auto& base = step.at[place];
  const auto at = base.bytes == 4 ? std::uint64_t{lanes<std::uint32_t>(base)[lane]}
                                  : lanes<std::uint64_t>(base)[lane];
  return at + static_cast<std::uint64_t>(std::int64_t{step.offsets[place]});
}

std::byte* Warp::memory(Space space, std::uint64_t address, std::size_t bytes, int lane) {
  if (address % bytes != 0) {
    throw Fault(
        fmt::format("lane {}: the address {:#x} is no multiple of {}", lane, address, bytes));
  }
  if (space == Space::Generic) {
    const auto window = address & kWindows;
    space = window == kSharedWindow      ? Space::Shared
            : window == kLocalWindow     ? Space::Local
            : window == kParameterWindow ? Space::Param
                                         : Space::Global;
    if (space != Space::Global) address &= ~kWindows;
  }
  const auto& launch = block_.launch();
  if (space == Space::Global) {
    if (launch.memory.holds(address, bytes)) return reinterpret_cast<std::byte*>(address);
    throw Fault(fmt::format("lane {}: {} bytes of global memory at {}", lane, bytes,
                            launch.memory.describe(address)));
  }
  if (space == Space::Shared) return block_.shared(address, bytes);
  const bool is_local = space == Space::Local;
  const auto size = is_local ? launch.program.local_bytes : launch.parameters.size();
  if (address >= size || bytes > size - address) {
    throw Fault(fmt::format("lane {}: {} bytes at {} of {} bytes of {}", lane, bytes, address, size,
                            is_local ? "local memory" : "parameters"));
  }
  if (is_local) return local_.data() + static_cast<std::size_t>(lane) * size + address;
  return const_cast<std::byte*>(launch.parameters.data()) + address;
}

void Warp::explain(const std::string& what) {
  const auto& program = block_.launch().program;
  const auto index = block_.index();
  throw Fault(fmt::format("{}, PTX line {} ({}), block ({}, {}, {}), warp {}: {}",
                          short_name(program.name), program.lines[current_],
                          program.names[current_], index.x, index.y, index.z, index_, what));
}

Block::Block(const Launch& launch) : launch_(launch), async_(*this) {
  shared_.resize(launch.program.static_shared_bytes + launch.shared_bytes);
  const auto warps = (launch.block.count() + kLanes - 1) / kLanes;
  for (std::uint64_t i = 0; i < warps; ++i) {
    warps_.push_back(std::make_unique<Warp>(*this, static_cast<int>(i)));
  }
}

Block::~Block() = default;

std::byte* Block::shared(std::uint64_t address, std::size_t bytes) {
  const auto at = address - kSharedStart;
  if (address < kSharedStart || at >= shared_.size() || bytes > shared_.size() - at) {
    throw Fault(fmt::format("{} bytes of shared memory at {} of {}", bytes,
                            static_cast<std::int64_t>(at), shared_.size()));
  }
  return shared_.data() + at;
}

void Block::run(Dim3 index) {
  index_ = index;
  std::ranges::fill(shared_, kUnwritten);
  async_.begin();
  for (auto& warp : warps_) warp->begin();
  const auto is_done = [](const auto& warp) { return warp->state() == Warp::State::Done; };
  int idle = 0;
  for (int turns = 0; !std::ranges::all_of(warps_, is_done); ++turns) {
    progress_ = false;
    for (auto& warp : warps_) {
      if (warp->state() == Warp::State::Ready) warp->run();
    }
    release_barriers();
    idle = progress_ ? 0 : idle + 1;
    if (idle > kIdleTurns || turns > kMostTurns) explain_deadlock();
  }
  try {
    async_.end();
  } catch (const Fault& fault) {
    throw Fault(fmt::format("{}: {}", short_name(launch_.program.name), fault.what()));
  }
}

/// Threads that have ended count as come.
void Block::release_barriers() {
  for (const auto& first : warps_) {
    if (first->state() != Warp::State::AtBarrier) continue;
    const int number = first->barrier();
    const auto has_come = [&](const auto& warp) {
      return warp->state() == Warp::State::Done ||
             (warp->state() == Warp::State::AtBarrier && warp->barrier() == number);
    };
    if (!std::ranges::all_of(warps_, has_come)) continue;
    for (auto& warp : warps_) {
      if (warp->state() == Warp::State::AtBarrier) warp->leave_barrier();
    }
    progress();
    return;
  }
}

void Block::explain_deadlock() {
  std::string list;
  for (const auto& warp : warps_) {
    if (warp->state() == Warp::State::Done) continue;
    list += fmt::format(" warp {} at line {}{};", warp->index(), warp->line(),
                        warp->state() == Warp::State::AtBarrier ? " (barrier)" : "");
  }
  throw Fault(fmt::format("{}, block ({}, {}, {}): it never ends:{}",
                          short_name(launch_.program.name), index_.x, index_.y, index_.z, list));
}

void run(const Launch& launch) {
  if (launch.block.count() == 0 || launch.block.count() > launch.program.most_threads ||
      launch.grid.count() == 0 || launch.grid.y > 65535 || launch.grid.z > 65535) {
    throw Fault("no GPU starts this kernel with such a grid");
  }
  constexpr std::size_t kMostShared = 227 * 1024;
  if (launch.program.static_shared_bytes + launch.shared_bytes > kMostShared) {
    throw Fault("a block cannot have so much shared memory");
  }
  const KeptFloatControl kept;
  Block block(launch);
  for (std::uint32_t z = 0; z < launch.grid.z; ++z) {
    for (std::uint32_t y = 0; y < launch.grid.y; ++y) {
      for (std::uint32_t x = 0; x < launch.grid.x; ++x) block.run({x, y, z});
    }
  }
}

}  // namespace triptych::ptx
