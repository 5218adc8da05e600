// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/gpu_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/library/libraries.h"
#include "backends/cuda/library/library_kernels.h"

namespace triptych::cuda::gpu {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

class GpuBuffer : public DeviceBuffer {
 public:
  /// Clear when it is there: other streams than this one use the memory, too.
  GpuBuffer(int index, std::size_t bytes, cudaStream_t stream) : index_(index), size_(bytes) {
    void* data = nullptr;
    const auto status = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      throw DeviceError(
          fmt::format("cuda:{}: there are no {} MiB of memory left; use a smaller batch or model, "
                      "or a memory limit",
                      index, bytes >> 20));
    }
    check(status, "allocating memory");
    data_ = static_cast<std::byte*>(data);
    check(cudaMemsetAsync(data_, 0, bytes, stream), "clearing memory");
    check(cudaStreamSynchronize(stream), "clearing memory");
  }
  ~GpuBuffer() override {
    cudaSetDevice(index_);
    cudaFree(data_);
  }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;
  std::byte* data() override { return data_; }
  std::size_t size() const override { return size_; }

 private:
  int index_;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

int checked_index(const DeviceOptions& options) {
  const auto [count, reason] = count_gpus();
  if (count == 0) throw DeviceError("cuda: " + reason);
  if (options.index < 0 || options.index >= count) {
    throw DeviceError(
        fmt::format("cuda:{} does not exist; there are {} GPUs", options.index, count));
  }
  const auto problem = architecture_problem(options.index);
  if (!problem.empty()) throw DeviceError(fmt::format("cuda:{}: {}", options.index, problem));
  return options.index;
}

int compute_capability(int index) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
        "asking for the compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index),
        "asking for the compute capability");
  return 10 * major + minor;
}

std::vector<KernelEntry> kernels_for(int capability) {
  // The libraries' after our own: without a measurement, the tested kernel runs.
  const auto own = kernel_table(capability);
  std::vector<KernelEntry> entries(own.begin(), own.end());
#if defined(TRIPTYCH_WITH_CUBLASLT)
  add_cublaslt_kernels(entries);
#endif
#if defined(TRIPTYCH_WITH_CUDNN)
  add_cudnn_kernels(entries);
#endif
  return entries;
}

bool wants_graphs(const DeviceOptions& options) {
  for (const auto& [name, value] : options.extra) {
    if (name != "graph" || (value != "on" && value != "off")) {
      throw InvalidArgument(fmt::format(
          "the backend cuda has no option {}={}; it takes graph=on or graph=off", name, value));
    }
  }
  return !options.extra.contains("graph") || options.extra.at("graph") == "on";
}

}  // namespace

Staging::Staging() {
  for (int i = 0; i < 2; ++i) {
    void* piece = nullptr;
    check(cudaMallocHost(&piece, kPieceBytes), "allocating page-locked memory");
    pieces_[i] = static_cast<std::byte*>(piece);
    check(cudaEventCreateWithFlags(&copied_[i], cudaEventDisableTiming), "making an event");
  }
}

Staging::~Staging() {
  for (int i = 0; i < 2; ++i) {
    cudaFreeHost(pieces_[i]);
    cudaEventDestroy(copied_[i]);
  }
}

void Staging::upload(std::byte* target, const std::byte* source, std::size_t bytes,
                     cudaStream_t stream) {
  int piece = 0;
  for (std::size_t done = 0; done < bytes; done += kPieceBytes, piece ^= 1) {
    const auto size = std::min(kPieceBytes, bytes - done);
    check(cudaEventSynchronize(copied_[piece]), "waiting for an upload");
    std::memcpy(pieces_[piece], source + done, size);
    check(cudaMemcpyAsync(target + done, pieces_[piece], size, cudaMemcpyHostToDevice, stream),
          "uploading");
    check(cudaEventRecord(copied_[piece], stream), "recording an event");
  }
  check(cudaStreamSynchronize(stream), "uploading");
}

void Staging::download(std::byte* target, const std::byte* source, std::size_t bytes,
                       cudaStream_t stream) {
  const auto pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
  const auto fetch = [&](std::size_t i) {
    const auto size = std::min(kPieceBytes, bytes - i * kPieceBytes);
    check(cudaMemcpyAsync(pieces_[i % 2], source + i * kPieceBytes, size, cudaMemcpyDeviceToHost,
                          stream),
          "downloading");
    check(cudaEventRecord(copied_[i % 2], stream), "recording an event");
  };
  if (pieces > 0) fetch(0);
  for (std::size_t i = 0; i < pieces; ++i) {
    if (i + 1 < pieces) fetch(i + 1);
    check(cudaEventSynchronize(copied_[i % 2]), "downloading");
    const auto size = std::min(kPieceBytes, bytes - i * kPieceBytes);
    std::memcpy(target + i * kPieceBytes, pieces_[i % 2], size);
  }
}

GpuDevice::GpuDevice(const DeviceOptions& options)
    : index_(checked_index(options)),
      graphs_(wants_graphs(options)),
      kernels_(kernels_for(compute_capability(index_))),
      info_(describe_gpu(index_)),
      cache_(options.cache),
      opened_(std::chrono::steady_clock::now()) {
  make_current();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  staging_ = std::make_unique<Staging>();
}

GpuDevice::~GpuDevice() {
  cudaSetDevice(index_);
  cudaStreamSynchronize(stream_);
  // Recorded work may use memory that the libraries keep.
  for (const auto& [segment, graph] : segments_) cudaGraphExecDestroy(graph);
  shared_.clear();
  cudaStreamDestroy(stream_);
}

void GpuDevice::make_current() const { check(cudaSetDevice(index_), "choosing the device"); }

KernelTable GpuDevice::own_kernels() const { return kernels_; }

std::unique_ptr<DeviceBuffer> GpuDevice::allocate(std::size_t bytes) {
  make_current();
  return std::make_unique<GpuBuffer>(index_, bytes, stream_);
}

void GpuDevice::upload(std::byte* device_target, const std::byte* host_source, std::size_t bytes) {
  make_current();
  staging_->upload(device_target, host_source, bytes, stream_);
  uploaded_ += static_cast<double>(bytes);
}

void GpuDevice::download(std::byte* host_target, const std::byte* device_source,
                         std::size_t bytes) {
  make_current();
  staging_->download(host_target, device_source, bytes, stream_);
  downloaded_ += static_cast<double>(bytes);
}

void GpuDevice::submit(int segment, const std::function<void(Stream*)>& enqueue) {
  make_current();
  if (!graphs_ || warm_.insert(segment).second) {
    GpuStream stream(stream_);
    enqueue(&stream);
    return;
  }
  auto recorded = segments_.find(segment);
  if (recorded == segments_.end()) recorded = segments_.emplace(segment, record(enqueue)).first;
  check(cudaGraphLaunch(recorded->second, stream_), "launching a recorded segment");
}

cudaGraphExec_t GpuDevice::record(const std::function<void(Stream*)>& enqueue) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording a segment");
  try {
    GpuStream stream(stream_);
    enqueue(&stream);
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph), "recording a segment (graph=off does without)");
  cudaGraphExec_t executable = nullptr;
  const auto status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "preparing a recorded segment");
  return executable;
}

void GpuDevice::release(int segment) {
  warm_.erase(segment);
  const auto recorded = segments_.find(segment);
  if (recorded == segments_.end()) return;
  cudaSetDevice(index_);
  cudaStreamSynchronize(stream_);
  cudaGraphExecDestroy(recorded->second);
  segments_.erase(recorded);
}

void GpuDevice::synchronize() {
  make_current();
  check(cudaStreamSynchronize(stream_), "running kernels");
}

Duration GpuDevice::elapsed() {
  synchronize();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - opened_;
  return {time.count(), TimeKind::Measured};
}

std::map<std::string, double> GpuDevice::counters() const {
  return {{"bytes_uploaded", uploaded_}, {"bytes_downloaded", downloaded_}};
}

GpuCount count_gpus() {
  int count = 0;
  const auto status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return {count, ""};
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess || status == cudaErrorNoDevice) return {0, "the driver finds no GPU"};
  if (status == cudaErrorInsufficientDriver) {
    return {0, "there is no NVIDIA driver, or it is older than this build's CUDA"};
  }
  return {0, cudaGetErrorString(status)};
}

namespace {

/// Floating-point operations of one multiprocessor in one cycle: on its CUDA cores in f32, and on
/// its tensor cores of bf16 with sums in f32 (0: it has none for bf16). From NVIDIA's tables.
struct PeakPerCycle {
  int major, minor;
  double f32, bf16;
};
constexpr PeakPerCycle kPeaks[] = {{7, 5, 128, 0},    {8, 0, 128, 2048}, {8, 6, 256, 1024},
                                   {8, 9, 256, 1024}, {9, 0, 256, 4096}, {10, 0, 256, 8192}};

/// Peaks that the clocks promise (modelled), for rooflines. Nothing for a GPU that the table does
/// not have.
void add_peaks(DeviceInfo& info, const cudaDeviceProp& properties, int index) {
  int clock_khz = 0, memory_khz = 0;
  check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index), "asking for a clock");
  check(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, index),
        "asking for a clock");
  for (const auto& peak : kPeaks) {
    if (peak.major != properties.major || peak.minor != properties.minor) continue;
    const double cycles = properties.multiProcessorCount * (clock_khz * 1e3);
    info.facts.peak_f32_flops = peak.f32 * cycles;
    if (peak.bf16 > 0) info.facts.peak_bf16_flops = peak.bf16 * cycles;
    // Two transfers per clock.
    info.facts.peak_memory_bytes_per_second =
        2 * (memory_khz * 1e3) * properties.memoryBusWidth / 8;
  }
}

}  // namespace

DeviceInfo describe_gpu(int index) {
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, index), "asking for the GPU's properties");
  DeviceInfo info{.name = fmt::format("cuda:{}", index), .description = properties.name};
  auto& facts = info.facts;
  facts.compute_capability = fmt::format("{}.{}", properties.major, properties.minor);
  facts.multiprocessors = properties.multiProcessorCount;
  facts.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  facts.l2_bytes = properties.l2CacheSize;
  facts.shared_bytes_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  facts.memory_bus_bits = properties.memoryBusWidth;
  for (const auto& library : libraries()) {
    if (!library.version.empty()) facts.libraries[library.name] = library.version;
  }
  add_peaks(info, properties, index);
  return info;
}

std::string architecture_problem(int index) {
  cudaFuncAttributes attributes = {};
  if (cudaSetDevice(index) == cudaSuccess && probe_kernel(attributes) == cudaSuccess) return "";
  static_cast<void>(cudaGetLastError());
  return fmt::format(
      "this build has no kernels for {}; build with -DTRIPTYCH_CUDA_ARCHITECTURES=native",
      describe_gpu(index).facts.compute_capability.value());
}

}  // namespace triptych::cuda::gpu
