// SPDX-License-Identifier: Apache-2.0
#include "backends/host/host_device.h"

#include <fmt/core.h>

#include <cstring>
#include <new>

#include "core/base/available_memory.h"
#include "core/base/memory_budget.h"
#include "core/runtime/host_buffer.h"

namespace triptych {
namespace {

constexpr std::size_t kAskFrom = std::size_t{64} << 20;  // below, asking costs more than it helps

DeviceError not_enough_memory(const std::string& name, std::size_t bytes) {
  return DeviceError(fmt::format(
      "{}: {} MiB are needed at once, {} MiB are available; use a smaller batch or model, or a "
      "memory limit",
      name, bytes >> 20, available_memory() >> 20));
}

int checked_threads(const std::string& name, const DeviceOptions& options) {
  if (options.index != 0) {
    throw InvalidArgument(fmt::format("{0}:{1} does not exist; this processor is one device, {0}:0",
                                      name, options.index));
  }
  if (!options.extra.empty()) {
    throw InvalidArgument(fmt::format("the backend {} has no option \"{}\"; it takes threads only",
                                      name, options.extra.begin()->first));
  }
  if (options.threads < 0 || options.threads > 4096) {
    throw InvalidArgument(
        fmt::format("threads is {}; it must be 0 (all) to 4096", options.threads));
  }
  return options.threads > 0 ? options.threads : usable_processors();
}

}  // namespace

HostDevice::HostDevice(std::string name, const DeviceOptions& options)
    : name_(std::move(name)),
      threads_(checked_threads(name_, options)),
      opened_(std::chrono::steady_clock::now()),
      team_(threads_) {}

std::unique_ptr<DeviceBuffer> HostDevice::allocate(std::size_t bytes) {
  // An overcommitting system grants more than it has and then kills whoever touches it.
  if (bytes >= kAskFrom && bytes > available_memory()) throw not_enough_memory(name_, bytes);
  try {
    return std::make_unique<HostBuffer>(bytes);
  } catch (const MemoryLimitReached&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw not_enough_memory(name_, bytes);
  }
}

void HostDevice::upload(std::byte* device_target, const std::byte* host_source, std::size_t bytes) {
  if (bytes > 0) std::memcpy(device_target, host_source, bytes);
}

void HostDevice::download(std::byte* host_target, const std::byte* device_source,
                          std::size_t bytes) {
  if (bytes > 0) std::memcpy(host_target, device_source, bytes);
}

void HostDevice::submit(int, const std::function<void(Stream*)>& enqueue) {
  team_.execute([&] { enqueue(stream()); });
}

Duration HostDevice::elapsed() {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - opened_;
  return {time.count(), TimeKind::Measured};
}

}  // namespace triptych
