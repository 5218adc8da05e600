// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_device.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <new>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/simd.h"

namespace triptych::cpu {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t kFlushBits = 0x8040;  // MXCSR: flush-to-zero, denormals-are-zero
std::uint64_t read_float_control() { return __builtin_ia32_stmxcsr(); }
void write_float_control(std::uint64_t bits) {
  __builtin_ia32_ldmxcsr(static_cast<unsigned>(bits));
}
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushBits = std::uint64_t{1} << 24;  // FPCR.FZ
std::uint64_t read_float_control() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void write_float_control(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
#error "how does this processor flush subnormals?"
#endif

class HostBuffer : public DeviceBuffer {
 public:
  explicit HostBuffer(std::size_t bytes) : bytes_(allocate_aligned(bytes)), size_(bytes) {}
  std::byte* data() override { return bytes_.get(); }
  std::size_t size() const override { return size_; }

 private:
  AlignedBytes bytes_;
  std::size_t size_;
};

constexpr std::size_t kAskFrom = std::size_t{64} << 20;  // below, asking costs more than it helps

/// What the system can give without ending a process; the largest number where it does not say.
std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::size_t kibibytes = 0;
  for (std::string key; file >> key; file.ignore(256, '\n')) {
    if (key == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::numeric_limits<std::size_t>::max();
}

DeviceError not_enough_memory(std::size_t bytes) {
  return DeviceError(fmt::format(
      "cpu: {} MiB are needed at once, {} MiB are available; use a smaller batch or model, or a "
      "memory limit",
      bytes >> 20, available_bytes() >> 20));
}

int checked_threads(const DeviceOptions& options) {
  if (options.index != 0) {
    throw InvalidArgument(
        fmt::format("cpu:{} does not exist; the CPU is one device, cpu:0", options.index));
  }
  if (!options.extra.empty()) {
    throw InvalidArgument(fmt::format("the CPU backend has no option \"{}\"; it takes threads only",
                                      options.extra.begin()->first));
  }
  if (options.threads < 0 || options.threads > 4096) {
    throw InvalidArgument(
        fmt::format("threads is {}; it must be 0 (all) to 4096", options.threads));
  }
  return options.threads > 0 ? options.threads : usable_processors();
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string simd_name() {
  switch (simd_level()) {
    case Simd::Avx512:
      return "AVX-512";
    case Simd::Avx2:
      return "AVX2";
    case Simd::Baseline:
      return "baseline";
  }
  return "";
}

}  // namespace

FlushSubnormals::FlushSubnormals() : previous_(read_float_control()) {
  write_float_control(previous_ | kFlushBits);
}

FlushSubnormals::~FlushSubnormals() { write_float_control(previous_); }

CpuDevice::CpuDevice(const DeviceOptions& options)
    : threads_(checked_threads(options)),
      info_(describe_cpu(threads_)),
      opened_(std::chrono::steady_clock::now()),
      arena_(threads_) {
  if (threads_ > usable_processors()) {
    more_workers_.emplace(tbb::global_control::max_allowed_parallelism,
                          static_cast<std::size_t>(threads_));
  }
  // Workers compute with the floating-point settings under which their arena was initialised.
  const FlushSubnormals flush;
  arena_.initialize();
}

KernelTable CpuDevice::kernels() const { return kernel_table(); }

std::unique_ptr<DeviceBuffer> CpuDevice::allocate(std::size_t bytes) {
  // An overcommitting system grants more than it has and then kills whoever touches it.
  if (bytes >= kAskFrom && bytes > available_bytes()) throw not_enough_memory(bytes);
  try {
    return std::make_unique<HostBuffer>(bytes);
  } catch (const std::bad_alloc&) {
    throw not_enough_memory(bytes);
  }
}

void CpuDevice::upload(std::byte* device_target, const std::byte* host_source, std::size_t bytes) {
  if (bytes > 0) std::memcpy(device_target, host_source, bytes);
}

void CpuDevice::download(std::byte* host_target, const std::byte* device_source,
                         std::size_t bytes) {
  if (bytes > 0) std::memcpy(host_target, device_source, bytes);
}

void CpuDevice::submit(int, const std::function<void(Stream*)>& enqueue) {
  arena_.execute([&] {
    const FlushSubnormals flush;
    enqueue(nullptr);
  });
}

Duration CpuDevice::elapsed() {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - opened_;
  return {time.count(), TimeKind::Measured};
}

DeviceInfo describe_cpu(int threads) {
  DeviceInfo info{.name = "cpu", .description = processor_name()};
  info.properties["threads"] = std::to_string(threads);
  info.properties["simd"] = simd_name();
  const std::pair<int, const char*> caches[] = {{_SC_LEVEL1_DCACHE_SIZE, "l1d_bytes"},
                                                {_SC_LEVEL2_CACHE_SIZE, "l2_bytes"},
                                                {_SC_LEVEL3_CACHE_SIZE, "l3_bytes"}};
  for (const auto& [name, property] : caches) {
    const long bytes = sysconf(name);
    if (bytes > 0) info.properties[property] = std::to_string(bytes);
  }
  return info;
}

int usable_processors() { return tbb::info::default_concurrency(); }

}  // namespace triptych::cpu
