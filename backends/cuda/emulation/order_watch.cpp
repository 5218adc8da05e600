// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/order_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {
namespace {

constexpr std::size_t kAtomBytes = 1024;

void join(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

/// Texts are made here, so that nothing is left on the stack of a thread that fails.
std::string overwritten(const Location& copy) {
  return fmt::format(
      "the copy overwrites what the copy of {}:{} brings, with no wait for that one between",
      file_of(copy), copy.line());
}
std::string read_too_early(std::size_t byte, const Location& copy, bool landed) {
  return fmt::format("the product reads byte {} of shared memory, {} the copy of {}:{} {}", byte,
                     landed ? "which" : "where", file_of(copy), copy.line(),
                     landed ? "filled; this thread has not waited for its barrier"
                            : "is still under way; its barrier is to be waited for");
}

std::size_t first_atom(SharedRange range) { return range.begin / kAtomBytes; }
std::size_t last_atom(SharedRange range) { return (range.begin + range.bytes - 1) / kAtomBytes; }

}  // namespace

void OrderWatch::begin_block(unsigned threads) {
  threads_ = threads;
  const Clock start(threads + kMostBarriers, 0);
  clocks_.assign(threads, start);
  for (unsigned thread = 0; thread < threads; ++thread) clocks_[thread][thread] = 1;
  barriers_.assign(kMostBarriers, {start, start, 0});
  atoms_.resize(kMaxSharedBytes / kAtomBytes);
  for (Atom& atom : atoms_) {
    atom.copied = false;
    atom.reads.assign(threads, 0);
  }
}

void OrderWatch::block_met() {
  Clock all = clocks_.front();
  for (const Clock& clock : clocks_) join(all, clock);
  for (unsigned thread = 0; thread < threads_; ++thread) {
    clocks_[thread] = all;
    ++clocks_[thread][thread];
  }
}

void OrderWatch::warp_met(unsigned warp, std::uint32_t mask) {
  const auto first = warp * kWarp;
  Clock all(threads_ + kMostBarriers, 0);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    join(all, clocks_[first + static_cast<unsigned>(std::countr_zero(rest))]);
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto thread = first + static_cast<unsigned>(std::countr_zero(rest));
    clocks_[thread] = all;
    ++clocks_[thread][thread];
  }
}

void OrderWatch::arrived(unsigned thread, std::size_t barrier) {
  join(barriers_[barrier].gathering, clocks_[thread]);
  ++clocks_[thread][thread];
}

void OrderWatch::waited(unsigned thread, std::size_t barrier) {
  join(clocks_[thread], barriers_[barrier].over);
}

void OrderWatch::phase_over(std::size_t barrier) {
  BarrierClocks& clocks = barriers_[barrier];
  clocks.gathering[threads_ + barrier] = ++clocks.phases;
  join(clocks.over, clocks.gathering);
}

void OrderWatch::check_copy(Block& block, const Atom& atom, std::size_t barrier, bool whole,
                            const Location& where) const {
  const Clock& clock = clocks_[block.thread()];
  if (atom.copied && phases_known(clock, atom.barrier) < atom.phase) {
    // Two boxes of one phase may share an atom.
    const bool beside = atom.barrier == barrier && !whole;
    if (!beside) {
      block.fail(FaultKind::Race, where, overwritten(atom.where));
    }
  }
  for (unsigned thread = 0; thread < threads_; ++thread) {
    if (atom.reads[thread] <= clock[thread]) continue;
    block.fail(FaultKind::Race, where,
               fmt::format("the copy overwrites a tile that a product of thread {} {}", thread,
                           atom.reads[thread] == kReading
                               ? "is still reading"
                               : "has read, with no wait for that thread between"));
  }
}

void OrderWatch::copy_started(Block& block, SharedRange to, std::size_t barrier,
                              const Location& where) {
  for (auto at = first_atom(to); at <= last_atom(to); ++at) {
    Atom& atom = atoms_[at];
    const bool whole = to.begin <= at * kAtomBytes && (at + 1) * kAtomBytes <= to.begin + to.bytes;
    check_copy(block, atom, barrier, whole, where);
    atom.copied = true;
    atom.barrier = barrier;
    atom.phase = barriers_[barrier].phases + 1;
    atom.where = where;
  }
}

void OrderWatch::product_started(Block& block, SharedRange operand, const Location& where) {
  const auto thread = block.thread();
  for (auto at = first_atom(operand); at <= last_atom(operand); ++at) {
    Atom& atom = atoms_[at];
    if (!atom.copied) {
      block.fail(FaultKind::Uninitialised, where,
                 fmt::format("the product reads byte {} of shared memory, which no copy has filled",
                             at * kAtomBytes));
    }
    if (barriers_[atom.barrier].phases < atom.phase) {
      block.fail(FaultKind::Race, where, read_too_early(at * kAtomBytes, atom.where, false));
    }
    if (phases_known(clocks_[thread], atom.barrier) < atom.phase) {
      block.fail(FaultKind::Race, where, read_too_early(at * kAtomBytes, atom.where, true));
    }
    atom.reads[thread] = kReading;
  }
}

void OrderWatch::product_ended(unsigned thread, SharedRange operand) {
  for (auto at = first_atom(operand); at <= last_atom(operand); ++at) {
    atoms_[at].reads[thread] = clocks_[thread][thread];
  }
}

void OrderWatch::product_goes_on(unsigned thread, SharedRange operand) {
  for (auto at = first_atom(operand); at <= last_atom(operand); ++at) {
    atoms_[at].reads[thread] = kReading;
  }
}

}  // namespace triptych::cuda::emulation
