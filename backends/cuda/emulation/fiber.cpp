// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <mutex>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace triptych::cuda::emulation {

namespace context = boost::context::detail;

namespace {

/// Stacks end at so many places of a page, in steps of so many bytes.
constexpr std::size_t kStackEnds = 16, kStackStep = 64;

/// Bytes at the end of a stack. Code that has reached them has used all of it.
constexpr std::size_t kLowestBytes = 512;

/// Fibers with a closed page below their stack. Each takes two ranges of memory, and Linux allows a
/// process 65,530 of them. The stacks of further fibers have none, and join in one range.
constexpr std::size_t kMostGuarded = 24576;
std::atomic<std::size_t> guarded{0};

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

struct MappedStack {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;    ///< with the closed page
  bool is_guarded = false;  ///< the lowest page is closed
};

MappedStack map_stack(std::size_t stack_bytes) {
  const bool is_guarded = guarded++ < kMostGuarded;
  if (!is_guarded) --guarded;
  const auto bytes = stack_bytes + (is_guarded ? 2 : 1) * page_bytes();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    if (is_guarded) --guarded;
    throw std::bad_alloc();
  }
  auto* stack = static_cast<std::byte*>(memory);
  if (is_guarded) mprotect(stack, page_bytes(), PROT_NONE);
  return {stack, bytes, is_guarded};
}

/// The next fiber finds no trace of an overflow.
bool is_clean(std::span<const std::byte> stack) {
  return std::ranges::all_of(stack.first(kLowestBytes),
                             [](std::byte each) { return each == std::byte{0}; });
}

/// Stacks with a closed page that fibers have left. A launch needs as many as a block has threads,
/// and the system takes microseconds for each.
class StackPool {
 public:
  /// Without memory: there is none of this size.
  MappedStack take(std::size_t stack_bytes) {
    const std::lock_guard lock(mutex_);
    if (stacks_.empty() || stacks_.back().bytes != stack_bytes + 2 * page_bytes()) return {};
    const auto stack = stacks_.back();
    stacks_.pop_back();
    return stack;
  }
  /// False: the caller keeps it.
  bool give(const MappedStack& stack) {
    const std::lock_guard lock(mutex_);
    if (stacks_.size() == kMost) return false;
    stacks_.push_back(stack);
    return true;
  }
  /// Never destroyed: fibers may end later than other data.
  static StackPool& common() {
    static auto* const pool = new StackPool;
    return *pool;
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::size_t kMost = 0;
#else
  static constexpr std::size_t kMost = 1024;
#endif
  std::mutex mutex_;
  std::vector<MappedStack> stacks_;
};

/// Whoever made the last switch of this thread. The caller informs the sanitizer which fiber it
/// left.
thread_local Fiber* left = nullptr;
thread_local Fiber* entered = nullptr;

#if defined(__SANITIZE_THREAD__)
/// All fibers of a thread of the processor are one thread for ThreadSanitizer, which takes a
/// megabyte for each and has some thousands. Only one of them runs at a time. It counts calls and
/// returns, so that those who never return (~Fiber) need another one after them.
thread_local void* observed = nullptr;

void end_observed() {
  if (observed != nullptr) __tsan_destroy_fiber(observed);
  observed = nullptr;
}

/// Fibers of a thread may outlive this, so the data that they read have no destructor.
struct EndAtExit {
  ~EndAtExit() { end_observed(); }
};

void* observed_thread() {
  thread_local const EndAtExit at_exit;
  return observed == nullptr ? observed = __tsan_create_fiber(0) : observed;
}
#endif

}  // namespace

Fiber::Fiber(std::size_t stack_bytes, Entry entry, void* argument)
    : entry_(entry), argument_(argument), stack_bytes_(stack_bytes) {
  // The lowest page stays closed, so that an overflow stops instead of running into other memory.
  auto mapped = StackPool::common().take(stack_bytes);
  if (mapped.memory == nullptr) mapped = map_stack(stack_bytes);
  stack_ = mapped.memory;
  mapped_bytes_ = mapped.bytes;
  auto* bottom = stack_ + (mapped.is_guarded ? page_bytes() : 0);
  stack_bottom_ = bottom;
  // Threads of a block stand at the same depth of their stacks. Ends at different places of a page
  // keep them apart in the processor's caches, whose sets follow from these places.
  static std::atomic<std::size_t> fibers{0};
  stack_bytes_ = stack_bytes + fibers++ % kStackEnds * kStackStep;
  open_ = {bottom, stack_bytes_};
  context_ = context::make_fcontext(bottom + stack_bytes_, stack_bytes_, [](auto transfer) {
    left->context_ = transfer.fctx;
    Fiber* self = entered;
    self->arrived();
    self->entry_(self->argument_);
  });
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
#if defined(__SANITIZE_ADDRESS__)
  // Frames that stood on it may have been left for ever: the next to get this memory is not to
  // blame.
  __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  end_observed();
#endif
  if (open_.data() != stack_) {
    if (is_clean(open_) && StackPool::common().give({stack_, mapped_bytes_, true})) return;
    --guarded;
  }
  munmap(stack_, mapped_bytes_);
}

void Fiber::resume(Fiber& from) {
  left = &from;
  entered = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack_, stack_bottom_, stack_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  if (from.stack_ == nullptr) from.thread_ = __tsan_get_current_fiber();
  if (from.stack_ == nullptr || stack_ == nullptr) {
    __tsan_switch_to_fiber(stack_ == nullptr ? thread_ : observed_thread(), 0);
  }
#endif
  const auto transfer = context::jump_fcontext(context_, nullptr);
  // Here again: `left` is whoever resumed this one.
  left->context_ = transfer.fctx;
  from.arrived();
}

void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &bytes);
  left->stack_bottom_ = bottom;
  left->stack_bytes_ = bytes;
#endif
}

}  // namespace triptych::cuda::emulation
