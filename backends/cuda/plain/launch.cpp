// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/launch.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <new>
#include <utility>

#include "backends/cuda/emulation/occupancy.h"
#include "backends/cuda/plain/signals.h"

namespace triptych::cuda::plain {
namespace {

/// Steps after which a thread lets the others of its block go on.
constexpr std::uint64_t kTurn = 1024;

/// Addresses of arrays: each in its own piece of the address space, larger than a 32-bit index of
/// 16-byte elements can span.
constexpr std::uintptr_t kFirstPlace = std::uintptr_t{0x2000} << 32,
                         kDistance = std::uintptr_t{1} << 38;
constexpr std::uintptr_t kPlaces = 64;

std::size_t whole_pages(std::size_t bytes) { return (bytes / 4096 + 1) * 4096; }

/// The most warps that threads and shared memory allow: nothing is known of registers.
std::map<std::string, Occupancy> occupancies(int threads, std::size_t shared_bytes) {
  std::map<std::string, Occupancy> result;
  for (const auto& on : emulation::multiprocessors()) {
    result[std::string(on.capability)] = emulation::occupancy(on, {threads, 0, shared_bytes});
  }
  return result;
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : size_(bytes), mapped_(whole_pages(bytes)) {
  static std::atomic<std::uintptr_t> next{0};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a place that is wished for
  auto* hint = reinterpret_cast<void*>(kFirstPlace + next++ % kPlaces * kDistance);
  void* memory = mmap(hint, mapped_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(memory);
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(other.size_), mapped_(other.mapped_) {}

LaunchResult run(const KernelLibrary& library, const Launch& launch) {
  const Watch watch(library, launch.arrays, launch.shape.shared_bytes, launch.explain,
                    launch.textures);
  emulation::EmulatedStream stream(emulation::Mode::Checked);
  stream.follow({.most_steps = launch.most_steps,
                 .turn = kTurn,
                 .barriers_skip_ended = launch.barriers_skip_ended,
                 .equal_stores_race = launch.equal_stores_race});
  const SignalGuard guard;
  tbb::task_arena arena(launch.threads);
  arena.execute([&] {
    stream.run(launch.kernel.c_str(), launch.shape, [&] {
      watch.enter();
      launch.call();
    });
  });
  auto counters = stream.counters().at(launch.kernel);
  counters.shared_bytes = watch.shared_bytes_used();
  counters.occupancy =
      occupancies(static_cast<int>(launch.shape.block.count()), counters.shared_bytes);
  return {std::move(counters), stream.skipped(), stream.equal_stores()};
}

}  // namespace triptych::cuda::plain
