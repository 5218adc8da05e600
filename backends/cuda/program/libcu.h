// The subset of libcu++ that is emulated: barriers of a block, atomic objects. Waiting on a barrier
// orders accesses as fences around atomic operations do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

// NOLINTBEGIN(readability-identifier-naming): libcu++'s own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
namespace cuda {

using triptych::cuda::emulation::Location;
using triptych::cuda::plain::Touch;

enum thread_scope {
  thread_scope_system,
  thread_scope_device,
  thread_scope_block,
  thread_scope_thread
};
namespace std {
using namespace ::std;
}

namespace details {

/// Waits until other threads have counted up to `least`.
TRIPTYCH_UNWATCHED inline void wait_until(const unsigned& counter, unsigned least,
                                          const Location& where) {
  const volatile unsigned& count = counter;
  // Each fence is a step, after which other threads may run.
  while (count < least) triptych::cuda::plain::services->fence(where, false);
  triptych::cuda::plain::touch(Touch::VolatileLoad, &counter, where);
  triptych::cuda::plain::services->fence(where, false);
}

}  // namespace details

/// Counts arrivals: phase n ends with arrival (n + 1) * expected.
template <thread_scope kScope = thread_scope_system, class Completion = void>
class barrier {
  static_assert(kScope == thread_scope_block && ::std::is_void_v<Completion>,
                "only barriers of a block without a completion function are emulated");

 public:
  class arrival_token {
    friend class barrier;
    unsigned phase_ = 0;
  };

  barrier() = default;
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  TRIPTYCH_UNWATCHED friend void init(barrier* object, ::std::ptrdiff_t expected,
                                      Location where = Location::current()) {
    triptych::cuda::plain::touch(Touch::Store, &object->expected_, where);
    triptych::cuda::plain::touch(Touch::Store, &object->arrived_, where);
    object->expected_ = static_cast<unsigned>(expected);
    object->arrived_ = 0;
  }

  TRIPTYCH_UNWATCHED arrival_token arrive(::std::ptrdiff_t count = 1,
                                          Location where = Location::current()) {
    triptych::cuda::plain::touch(Touch::Load, &expected_, where);
    triptych::cuda::plain::services->fence(where, false);
    arrival_token token;
    token.phase_ = atomicAdd(&arrived_, static_cast<unsigned>(count), where) / expected_;
    return token;
  }
  TRIPTYCH_UNWATCHED void wait(arrival_token&& token, Location where = Location::current()) const {
    details::wait_until(arrived_, (token.phase_ + 1) * expected_, where);
  }
  TRIPTYCH_UNWATCHED void arrive_and_wait(Location where = Location::current()) {
    wait(arrive(1, where), where);
  }

 private:
  unsigned expected_, arrived_;
};

/// Operations on an object of Self, sequentially consistent at every scope.
template <class Self, class T>
class atomic_operations {
 public:
  TRIPTYCH_UNWATCHED T load(::std::memory_order = ::std::memory_order_seq_cst,
                            Location where = Location::current()) const {
    triptych::cuda::plain::services->fence(where, true);
    triptych::cuda::plain::touch(Touch::AtomicRead, place(), where);
    const T value = *const_cast<const volatile T*>(place());
    triptych::cuda::plain::services->fence(where, true);
    return value;
  }
  TRIPTYCH_UNWATCHED void store(T value, ::std::memory_order order = ::std::memory_order_seq_cst,
                                Location where = Location::current()) const {
    exchange(value, order, where);
  }
#define TRIPTYCH_ATOMIC(name, function)                                                 \
  TRIPTYCH_UNWATCHED T name(T value, ::std::memory_order = ::std::memory_order_seq_cst, \
                            Location where = Location::current()) const {               \
    triptych::cuda::plain::services->fence(where, true);                                \
    const T before = function(place(), value, where);                                   \
    triptych::cuda::plain::services->fence(where, true);                                \
    return before;                                                                      \
  }
  TRIPTYCH_ATOMIC(exchange, atomicExch)
  TRIPTYCH_ATOMIC(fetch_add, atomicAdd)
  TRIPTYCH_ATOMIC(fetch_sub, atomicSub)
  TRIPTYCH_ATOMIC(fetch_and, atomicAnd)
  TRIPTYCH_ATOMIC(fetch_or, atomicOr)
  TRIPTYCH_ATOMIC(fetch_xor, atomicXor)
  TRIPTYCH_ATOMIC(fetch_min, atomicMin)
  TRIPTYCH_ATOMIC(fetch_max, atomicMax)
#undef TRIPTYCH_ATOMIC
  TRIPTYCH_UNWATCHED bool compare_exchange_strong(T& expected, T desired,
                                                  ::std::memory_order = ::std::memory_order_seq_cst,
                                                  ::std::memory_order = ::std::memory_order_seq_cst,
                                                  Location where = Location::current()) const {
    triptych::cuda::plain::services->fence(where, true);
    const T before = atomicCAS(place(), expected, desired, where);
    triptych::cuda::plain::services->fence(where, true);
    const bool same = before == expected;
    expected = before;
    return same;
  }
  TRIPTYCH_UNWATCHED bool compare_exchange_weak(
      T& expected, T desired, ::std::memory_order success = ::std::memory_order_seq_cst,
      ::std::memory_order failure = ::std::memory_order_seq_cst,
      Location where = Location::current()) const {
    return compare_exchange_strong(expected, desired, success, failure, where);
  }

 private:
  TRIPTYCH_UNWATCHED T* place() const { return static_cast<const Self*>(this)->object(); }
};

template <class T, thread_scope kScope = thread_scope_system>
class atomic_ref : public atomic_operations<atomic_ref<T, kScope>, T> {
 public:
  TRIPTYCH_UNWATCHED explicit atomic_ref(T& object) : object_(&object) {}
  TRIPTYCH_UNWATCHED T* object() const { return object_; }

 private:
  T* object_;
};
template <class T, thread_scope kScope = thread_scope_system>
class atomic : public atomic_operations<atomic<T, kScope>, T> {
 public:
  atomic() = default;
  TRIPTYCH_UNWATCHED constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
  TRIPTYCH_UNWATCHED T* object() const { return const_cast<T*>(&value_); }

 private:
  T value_;
};

}  // namespace cuda
#pragma clang attribute pop
#pragma clang force_cuda_host_device end
// NOLINTEND(readability-identifier-naming)
