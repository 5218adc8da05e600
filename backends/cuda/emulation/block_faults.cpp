// The faults of a block: their words, and how they end it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "backends/cuda/emulation/async_units.h"
#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {

/// Waits of those who wait for a signal: the first one's, and the others' where they differ.
std::string Block::awaited() const {
  std::string text;
  for (unsigned thread = 0; thread < count_; ++thread) {
    if (states_[thread] != State::AtSignal) continue;
    const auto awaited = units_->awaited_by(thread);
    if (text.find(awaited) != std::string::npos) continue;
    text += text.empty() ? awaited
                         : fmt::format("; thread {} at line {} {}", thread,
                                       threads_[thread].where.line(), awaited);
  }
  return text;
}

/// Why nobody can go on.
KernelFault Block::deadlock() const {
  if (!gathering_.empty()) {
    const Meeting& meeting = *gathering_.front();
    const auto missing = static_cast<unsigned>(std::countr_zero(meeting.mask & ~meeting.arrived));
    const auto absent = meeting.warp * kWarp + missing;
    const auto present = static_cast<unsigned>(std::countr_zero(meeting.arrived));
    const auto does = absent >= count_ ? std::string("is not in the block")
                      : states_[absent] == State::Ended
                          ? std::string("has ended")
                          : fmt::format("waits at line {}", threads_[absent].where.line());
    return fault_at(meeting.warp * kWarp + present, FaultKind::MissingLane, meeting.where,
                    fmt::format("waits for lane {}, which {}", missing, does));
  }
  const auto number = [&](State state) {
    return static_cast<unsigned>(std::find(states_.begin(), states_.end(), state) -
                                 states_.begin());
  };
  if (at_signal_ > 0) {
    const auto waiting = number(State::AtSignal);
    return fault_at(waiting, FaultKind::DivergentBarrier, threads_[waiting].where, awaited());
  }
  return fault_at(number(State::AtBarrier), FaultKind::DivergentBarrier, barrier_,
                  fmt::format("waits for thread {} and {} more that have ended",
                              number(State::Ended), ended_ - 1));
}

KernelFault Block::fault_at(unsigned thread, FaultKind kind, const Location& where,
                            const std::string& what) const {
  const auto index = [](const Dim3& at) { return FaultPlace::Index{at.x, at.y, at.z}; };
  const FaultPlace place = {kernel_, file_of(where), where.line(), index(blockIdx),
                            index(index_in(blockDim, thread))};
  return {kind, place, what};
}

void Block::fail(FaultKind kind, const Location& where, std::string&& what) {
  {
    const std::string words = std::move(what);
    end_with(fault_at(thread_, kind, where, words));
  }
  end_here();
}

void Block::fault(FaultKind kind, const Location& where, std::string&& what, unsigned other_line) {
  if (!schedule_.keeps_going) fail(kind, where, std::move(what));
  noted_.add({fault_at(thread_, kind, where, what), other_line});
}

void Block::race(RacingAccess&& access) {
  const auto bytes = access.stores.count;
  const bool may_be_equal = !schedule_.strict && bytes > 0 && bytes <= RacingStores::kMostBytes;
  if (may_be_equal) return racing_.expect(thread_, std::move(access));
  fault(FaultKind::Race, access.where, std::move(access.what), access.other_line);
}

void Block::settle_stores(const Location& where) {
  while (auto unequal = racing_.settle(thread_, where)) {
    fault(FaultKind::Race, unequal->where, std::move(unequal->what), unequal->other_line);
  }
}

void Block::suspect(FaultKind kind, const Location& where, const std::string& what) {
  if (schedule_.keeps_going) {
    noted_.add({fault_at(thread_, kind, where, what)});
    return;
  }
  if (suspicion_ != nullptr) return;
  suspicion_ = std::make_unique<KernelFault>(fault_at(thread_, kind, where, what));
}

void Block::read_undefined(const Location& where, std::string&& what) {
  if (schedule_.strict) return suspect(FaultKind::Uninitialised, where, what);
  add(undefined_reads_, {where, 1, std::move(what)});
}

/// Notes why the kernel ends.
void Block::end_with(const KernelFault& fault) {
  if (suspicion_ == nullptr || fault.kind() == FaultKind::Race) {
    suspicion_ = std::make_unique<KernelFault>(fault);
  }
  fault_ = std::move(suspicion_);
}

void Block::end_here() {
  if (fault_ == nullptr) fault_ = std::move(suspicion_);
  hand_over();
  std::abort();  // nobody resumes a thread after a fault
}

}  // namespace triptych::cuda::emulation
