// Asynchronous copies of libcu++ and of cooperative groups: pipelines of a thread and of a block,
// copies that a barrier awaits. A copy into a pipeline happens when its thread waits for it: as
// late as a GPU may be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/cooperative_groups.h"
#include "backends/cuda/program/libcu.h"

// NOLINTBEGIN(readability-identifier-naming): libcu++'s own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
namespace cuda {

enum class pipeline_role { producer, consumer };

/// A number of bytes, and the alignment of both addresses.
template <::std::size_t kAlignment>
struct aligned_size_t {
  static constexpr ::std::size_t align = kAlignment;
  ::std::size_t value;
  TRIPTYCH_UNWATCHED constexpr explicit aligned_size_t(::std::size_t bytes) : value(bytes) {}
  TRIPTYCH_UNWATCHED constexpr operator ::std::size_t() const { return value; }
};

namespace details {

struct Copy {
  void* to;
  const void* from;
  ::std::size_t bytes;
  Location where;
  unsigned batch;
};

TRIPTYCH_UNWATCHED inline ::std::uintptr_t bits_of(const Copy& copy) {
  return reinterpret_cast<::std::uintptr_t>(copy.to) |
         reinterpret_cast<::std::uintptr_t>(copy.from);
}
template <::std::size_t kAlignment>
TRIPTYCH_UNWATCHED void check(aligned_size_t<kAlignment>, const Copy& copy) {
  if ((bits_of(copy) | copy.bytes) % kAlignment == 0) return;
  triptych::cuda::plain::services->fail(
      "an address or the size of memcpy_async is no multiple of the alignment that its "
      "aligned_size_t promises",
      copy.where);
}
TRIPTYCH_UNWATCHED inline void check(::std::size_t, const Copy&) {}

/// In pieces of 1 to 16 bytes, as a GPU copies. A call of memcpy would count a second time.
TRIPTYCH_UNWATCHED inline void run(const Copy& copy) {
  const auto* services = triptych::cuda::plain::services;
  auto* to = static_cast<volatile char*>(copy.to);
  const auto* from = static_cast<const volatile char*>(copy.from);
  for (::std::size_t at = 0; at < copy.bytes;) {
    const auto limits = bits_of(copy) | at | 16;
    auto piece = limits & (~limits + 1);
    while (piece > copy.bytes - at) piece /= 2;
    services->touch_at(Touch::Load, static_cast<const char*>(copy.from) + at, piece, copy.where);
    services->touch_at(Touch::Store, static_cast<char*>(copy.to) + at, piece, copy.where);
    for (const auto end = at + piece; at < end; ++at) to[at] = from[at];
  }
}

/// Passes the running thread's pieces of a group's copy to `take`.
template <class Group, class Take>
TRIPTYCH_UNWATCHED void for_each_part(const Group& group, const Copy& copy, const Take& take) {
  const auto lowest = (bits_of(copy) | copy.bytes | 16) & (~(bits_of(copy) | copy.bytes | 16) + 1);
  const auto step = lowest * group.size();
  for (auto at = lowest * group.thread_rank(); at < copy.bytes; at += step) {
    Copy part = copy;
    part.to = static_cast<char*>(copy.to) + at;
    part.from = static_cast<const char*>(copy.from) + at;
    part.bytes = lowest;
    take(part);
  }
}

/// Copies of one thread, in batches. The oldest happens when there are too many.
class Copies {
 public:
  TRIPTYCH_UNWATCHED void add(Copy copy) {
    copy.batch = committed_;
    if (count_ == kMost) run_first();
    copies_[(first_ + count_++) % kMost] = copy;
  }
  TRIPTYCH_UNWATCHED void commit() { ++committed_; }
  /// Waits for all batches but the last `prior` ones.
  TRIPTYCH_UNWATCHED void wait(unsigned prior) {
    while (count_ > 0 && copies_[first_].batch + prior < committed_) run_first();
  }

 private:
  static constexpr unsigned kMost = 32;
  TRIPTYCH_UNWATCHED void run_first() {
    run(copies_[first_]);
    first_ = (first_ + 1) % kMost;
    --count_;
  }

  Copy copies_[kMost];
  unsigned first_ = 0, count_ = 0, committed_ = 0;
};

}  // namespace details

/// Counts the arrivals of producers and consumers at each stage. In shared memory.
template <thread_scope kScope, ::std::uint8_t kStages>
class pipeline_shared_state {
  static_assert(kScope == thread_scope_block, "only pipelines of a block have a shared state here");

 public:
  pipeline_shared_state() = default;
  pipeline_shared_state(const pipeline_shared_state&) = delete;
  pipeline_shared_state& operator=(const pipeline_shared_state&) = delete;

 private:
  template <thread_scope>
  friend class pipeline;
  unsigned threads_[2];  ///< by role
  unsigned arrived_[kStages][2];
};

template <thread_scope kScope>
class pipeline;

/// The pipeline of one thread. consumer_wait() waits for all committed copies.
template <>
class pipeline<thread_scope_thread> {
 public:
  pipeline() = default;
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  TRIPTYCH_UNWATCHED void producer_acquire() {}
  TRIPTYCH_UNWATCHED void producer_commit() { copies_.commit(); }
  TRIPTYCH_UNWATCHED void consumer_wait() { copies_.wait(0); }
  TRIPTYCH_UNWATCHED void consumer_release() {}
  TRIPTYCH_UNWATCHED void triptych_add(const details::Copy& copy) { copies_.add(copy); }
  TRIPTYCH_UNWATCHED void triptych_wait_prior(unsigned batches) { copies_.wait(batches); }

 private:
  details::Copies copies_;
};

/// The pipeline of a block: a stage is full when all producers have committed it, and free when
/// all consumers have released it.
template <>
class pipeline<thread_scope_block> {
 public:
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  template <class Group, ::std::uint8_t kStages>
  TRIPTYCH_UNWATCHED pipeline(const Group& group,
                              pipeline_shared_state<thread_scope_block, kStages>* state,
                              bool produces, bool consumes, const Location& where)
      : threads_(state->threads_), arrived_(state->arrived_), stages_(kStages) {
    if (group.thread_rank() == 0) {
      clear(threads_, where);
      for (auto& stage : state->arrived_) clear(stage, where);
    }
    group.sync(where);
    if (produces) atomicAdd(&threads_[kProducer], 1U, where);
    if (consumes) atomicAdd(&threads_[kConsumer], 1U, where);
    group.sync(where);
  }

  TRIPTYCH_UNWATCHED void producer_acquire(Location where = Location::current()) {
    wait(kConsumer, committed_, committed_ / stages_, where);
  }
  TRIPTYCH_UNWATCHED void producer_commit(Location where = Location::current()) {
    copies_.commit();
    copies_.wait(0);
    arrive(kProducer, committed_++, where);
  }
  TRIPTYCH_UNWATCHED void consumer_wait(Location where = Location::current()) {
    wait(kProducer, released_, released_ / stages_ + 1, where);
  }
  TRIPTYCH_UNWATCHED void consumer_release(Location where = Location::current()) {
    arrive(kConsumer, released_++, where);
  }
  TRIPTYCH_UNWATCHED void triptych_add(const details::Copy& copy) { copies_.add(copy); }

 private:
  static constexpr int kProducer = static_cast<int>(pipeline_role::producer),
                       kConsumer = static_cast<int>(pipeline_role::consumer);

  TRIPTYCH_UNWATCHED static void clear(unsigned* counts, const Location& where) {
    for (int role = 0; role < 2; ++role) {
      triptych::cuda::plain::touch(Touch::Store, &counts[role], where);
      counts[role] = 0;
    }
  }
  TRIPTYCH_UNWATCHED void arrive(int role, unsigned number, const Location& where) {
    triptych::cuda::plain::services->fence(where, false);
    atomicAdd(&arrived_[number % stages_][role], 1U, where);
  }
  /// Waits until the threads of the role have come `rounds` times to the stage.
  TRIPTYCH_UNWATCHED void wait(int role, unsigned number, unsigned rounds, const Location& where) {
    triptych::cuda::plain::touch(Touch::Load, &threads_[role], where);
    details::wait_until(arrived_[number % stages_][role], rounds * threads_[role], where);
  }

  unsigned* threads_;
  unsigned (*arrived_)[2];
  unsigned stages_, committed_ = 0, released_ = 0;
  details::Copies copies_;
};

TRIPTYCH_UNWATCHED inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <class Group, thread_scope kScope, ::std::uint8_t kStages>
TRIPTYCH_UNWATCHED pipeline<kScope> make_pipeline(const Group& group,
                                                  pipeline_shared_state<kScope, kStages>* state,
                                                  Location where = Location::current()) {
  return pipeline<kScope>(group, state, true, true, where);
}
template <class Group, thread_scope kScope, ::std::uint8_t kStages>
TRIPTYCH_UNWATCHED pipeline<kScope> make_pipeline(const Group& group,
                                                  pipeline_shared_state<kScope, kStages>* state,
                                                  pipeline_role role,
                                                  Location where = Location::current()) {
  const bool produces = role == pipeline_role::producer;
  return pipeline<kScope>(group, state, produces, !produces, where);
}
/// The first `producers` threads of the group are producers.
template <class Group, thread_scope kScope, ::std::uint8_t kStages>
TRIPTYCH_UNWATCHED pipeline<kScope> make_pipeline(const Group& group,
                                                  pipeline_shared_state<kScope, kStages>* state,
                                                  ::std::size_t producers,
                                                  Location where = Location::current()) {
  const bool produces = group.thread_rank() < producers;
  return pipeline<kScope>(group, state, produces, !produces, where);
}
template <::std::uint8_t kPrior>
TRIPTYCH_UNWATCHED void pipeline_consumer_wait_prior(pipeline<thread_scope_thread>& pipe) {
  pipe.triptych_wait_prior(kPrior);
}

template <class Size, thread_scope kScope>
TRIPTYCH_UNWATCHED void memcpy_async(void* to, const void* from, Size bytes, pipeline<kScope>& pipe,
                                     Location where = Location::current()) {
  const details::Copy copy = {to, from, bytes, where, 0};
  details::check(bytes, copy);
  pipe.triptych_add(copy);
}
template <class Group, class Size, thread_scope kScope>
TRIPTYCH_UNWATCHED void memcpy_async(const Group& group, void* to, const void* from, Size bytes,
                                     pipeline<kScope>& pipe, Location where = Location::current()) {
  const details::Copy copy = {to, from, bytes, where, 0};
  details::check(bytes, copy);
  details::for_each_part(group, copy, [&](const details::Copy& part) { pipe.triptych_add(part); });
}
/// The barrier's next phase awaits the copy. It happens at once.
template <class Size, thread_scope kScope, class Completion>
TRIPTYCH_UNWATCHED void memcpy_async(void* to, const void* from, Size bytes,
                                     barrier<kScope, Completion>&,
                                     Location where = Location::current()) {
  const details::Copy copy = {to, from, bytes, where, 0};
  details::check(bytes, copy);
  details::run(copy);
}
template <class Group, class Size, thread_scope kScope, class Completion>
TRIPTYCH_UNWATCHED void memcpy_async(const Group& group, void* to, const void* from, Size bytes,
                                     barrier<kScope, Completion>&,
                                     Location where = Location::current()) {
  const details::Copy copy = {to, from, bytes, where, 0};
  details::check(bytes, copy);
  details::for_each_part(group, copy, [](const details::Copy& part) { details::run(part); });
}

}  // namespace cuda

namespace cooperative_groups {

/// Each thread of the group copies a part at once. wait() makes the parts known to all.
template <class Group, class Size>
TRIPTYCH_UNWATCHED void memcpy_async(const Group& group, void* to, const void* from, Size bytes,
                                     Location where = Location::current()) {
  const ::cuda::details::Copy copy = {to, from, bytes, where, 0};
  ::cuda::details::check(bytes, copy);
  ::cuda::details::for_each_part(
      group, copy, [](const ::cuda::details::Copy& part) { ::cuda::details::run(part); });
}
template <class Group>
TRIPTYCH_UNWATCHED void wait(const Group& group, Location where = Location::current()) {
  group.sync(where);
}
template <unsigned kPrior, class Group>
TRIPTYCH_UNWATCHED void wait_prior(const Group& group, Location where = Location::current()) {
  group.sync(where);
}

}  // namespace cooperative_groups
#pragma clang attribute pop
#pragma clang force_cuda_host_device end
// NOLINTEND(readability-identifier-naming)
