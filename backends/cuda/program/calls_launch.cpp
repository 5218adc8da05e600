// Kernels: registration, launches, attributes.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "backends/cuda/emulation/occupancy.h"
#include "backends/cuda/program/driver.h"
#include "core/base/available_memory.h"

namespace triptych::cuda::program::calls {
namespace {

constexpr std::size_t kMostLaunches = 10000;  // with an entry of its own in the report
constexpr std::size_t kMostFixedShared = 48 * 1024;
/// Memory for a thread that waits for the grid: the pages of its stack that kernels use.
constexpr std::uint64_t kResidentBytes = std::uint64_t{16} << 10;

/// "void scale<float>(float*, int)" without its type and parameters.
std::string kernel_name(const std::string& symbol) {
  auto name = plain::demangle(symbol);
  if (name.ends_with(')')) {
    auto at = name.size();
    for (int depth = 0; at > 0;) {
      --at;
      depth += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
      if (depth == 0) break;
    }
    name.resize(at);
  }
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

/// The kernel. nullptr, with a finding: none.
Kernel* kernel_of(const char* call, Place place, const void* function) {
  auto& session = Session::current();
  const auto found = session.kernels.find(function);
  if (found != session.kernels.end() && found->second.function != nullptr) return &found->second;
  session.mistake(cudaErrorInvalidDeviceFunction, call, place,
                  "the function is no kernel (a function marked __global__)");
  return nullptr;
}

bool is_host_memory(std::uintptr_t address) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char state = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that was used
  return mincore(reinterpret_cast<void*>(address / page * page), 1, &state) == 0;
}

/// Words about memory that is not the GPU's.
std::string explain_address(std::uintptr_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that was used
  const auto* memory = Session::current().heap.find(reinterpret_cast<void*>(address));
  if (memory == nullptr) {
    return is_host_memory(address) && !Session::current().heap.is_near(address)
               ? fmt::format(
                     "memory of the host at address {:#x}: copy it to an array of cudaMalloc "
                     "with cudaMemcpy",
                     address)
               : "";
  }
  if (memory->gone.empty()) {
    return Session::current().devices.remedy(Devices::current(), *memory);
  }
  return fmt::format("{}, which {}", memory->name, memory->gone);
}

/// Bytes of all parameters.
std::size_t parameter_bytes(const Kernel& kernel) {
  std::size_t end = 0;
  for (const auto& each : *kernel.places) end = std::max(end, each.offset + each.bytes);
  return end;
}

/// The mistake in the sizes of a launch. Empty: none.
std::string wrong_sizes(const Kernel& kernel, const emulation::LaunchShape& shape) {
  const auto &grid = shape.grid, &block = shape.block;
  const auto shared_bytes = shape.shared_bytes;
  const auto text = [](const emulation::Dim3& d) {
    return fmt::format("({}, {}, {})", d.x, d.y, d.z);
  };
  if (grid.count() == 0 || block.count() == 0) {
    return fmt::format("{} blocks of {} threads: no size may be 0", text(grid), text(block));
  }
  if (block.count() > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64) {
    return fmt::format("a block of {} threads has {}; at most 1024 are allowed, and 64 along z",
                       text(block), block.count());
  }
  if (grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535) {
    return fmt::format("a grid of {} blocks; along y and z at most 65535 are allowed", text(grid));
  }
  if (shared_bytes > kernel.most_dynamic_bytes) {
    return fmt::format(
        "{} bytes of dynamic shared memory; {} are allowed (cudaFuncSetAttribute with "
        "cudaFuncAttributeMaxDynamicSharedMemorySize allows more)",
        shared_bytes, kernel.most_dynamic_bytes);
  }
  if (const auto bytes = parameter_bytes(kernel); bytes > kMostParameterBytes) {
    return fmt::format(
        "{} bytes of parameters; {} are allowed: pass a pointer to memory of cudaMalloc", bytes,
        kMostParameterBytes);
  }
  return {};
}

/// Registers of a thread. 0: unknown.
int registers_of(const Kernel& kernel) {
  const auto& all = Session::current().options.registers;
  const auto found = all.find(kernel.name);
  return found == all.end() ? 0 : found->second;
}

void keep(Session& session, LaunchRecord&& record) {
  session.report.kernels[record.kernel] += record.counters;
  session.report.costs[record.kernel] += record.costs;
  if (session.report.launches.size() < kMostLaunches) {
    session.report.launches.push_back(std::move(record));
  }
}

void warn_of_skipped(Session& session, const emulation::SkippedThreads& skipped) {
  if (skipped.barriers == 0) return;
  session.report.warnings.push_back(fmt::format(
      "{}:{}: barriers opened although {} threads of the block had ended. GPUs do so, but CUDA "
      "leaves it undefined",
      emulation::file_of(skipped.where), skipped.where.line(), skipped.ended));
}

/// One warning for each place.
void warn(Session& session, const std::vector<emulation::Remark>& all, const char* meaning) {
  for (const auto& each : all) {
    auto file = emulation::file_of(each.where);
    if (!session.report.warned_places.emplace(file, each.where.line()).second) continue;
    session.report.warnings.push_back(fmt::format(
        "{}:{}: {}. {}, but CUDA leaves it undefined; the option strict ends the program here",
        file, each.where.line(), each.first, meaning));
  }
}

/// Memory that kernels of the current GPU may use.
Reach reach_of_kernels() {
  return [device = Devices::current(), &devices = Session::current().devices](
             const Allocation& memory) { return devices.may_use(device, memory); };
}

/// Arrays that the kernel may use: also variables of other modules.
std::vector<plain::DeviceArray> arrays_of(const Kernel& kernel) {
  auto& session = Session::current();
  auto arrays = session.heap.arrays(reach_of_kernels());
  const auto add = [&](const plain::KernelLibrary& library) {
    if (&library == kernel.library) return;
    for (const auto& each : library.global_variables()) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
      auto* begin = reinterpret_cast<std::byte*>(each.begin);
      arrays.push_back({.name = "the variable " + each.name,
                        .data = begin,
                        .bytes = each.bytes,
                        .element_bytes = 0});
    }
  };
  add(*session.library);
  for (const auto& each : session.modules) add(*each);
  return arrays;
}

/// The blocks of a cooperative launch that can be resident.
std::uint64_t most_resident(const Session& session, const Kernel& kernel,
                            const emulation::LaunchShape& shape) {
  const auto& gpu = *session.options.gpu;
  const auto occupancy = emulation::occupancy(
      multiprocessor_of(gpu), {static_cast<int>(shape.block.count()), registers_of(kernel),
                               shape.shared_bytes + kernel.shared_bytes});
  return static_cast<std::uint64_t>(occupancy.blocks) *
         static_cast<std::uint64_t>(gpu.multiprocessors);
}

/// The mistake in the grid of a cooperative launch. Empty: none.
std::string too_many_blocks(const Session& session, const Kernel& kernel,
                            const emulation::LaunchShape& shape) {
  const auto blocks = shape.grid.count();
  const auto most = most_resident(session, kernel, shape);
  if (blocks > most) {
    return fmt::format(
        "{} blocks of a cooperative launch; {} holds {} at once "
        "(cudaOccupancyMaxActiveBlocksPerMultiprocessor)",
        blocks, session.options.gpu->name, most);
  }
  const auto threads = blocks * shape.block.count();
  const auto available = available_memory();
  if (threads * kResidentBytes > available) {
    return fmt::format(
        "{} threads of a cooperative launch wait for each other and need about {} MiB for their "
        "stacks; {} MiB of memory are available: launch fewer blocks, or choose a smaller GPU",
        threads, threads * kResidentBytes >> 20, available >> 20);
  }
  return {};
}

/// Runs the kernel. A fault ends the program.
cudaError_t launch(Kernel& kernel, Place place, const emulation::LaunchShape& shape,
                   const KernelCall& call) {
  auto& session = Session::current();
  if (const auto wrong = wrong_sizes(kernel, shape); !wrong.empty()) {
    return session.mistake(cudaErrorInvalidConfiguration, "launch", place,
                           fmt::format("{}: {}", kernel.name, wrong));
  }
  if (shape.is_cooperative) {
    if (const auto wrong = too_many_blocks(session, kernel, shape); !wrong.empty()) {
      return session.mistake(cudaErrorCooperativeLaunchTooLarge, "cudaLaunchCooperativeKernel",
                             place, fmt::format("{}: {}", kernel.name, wrong));
    }
  }
  const auto where = session.location(place);
  if (session.device_heap == nullptr) {
    session.device_heap = std::make_unique<plain::DeviceHeap>(session.heap_limit);
  }
  session.heap.begin_kernel(reach_of_kernels());
  session.devices.select_variables();
  session.device_heap->open();
  try {
    plain::Launch request = {.kernel = kernel.name,
                             .call = [&] { call.run(kernel.function); },
                             .unwatched_call = {},
                             .shape = shape,
                             .arrays = arrays_of(kernel),
                             .explain = explain_address,
                             .textures = &session.textures,
                             .threads = session.options.threads,
                             .most_steps = session.options.most_steps,
                             .barriers_skip_ended = session.options.barriers_skip_ended,
                             .strict = session.options.strict,
                             .last_first = session.options.last_first,
                             .sample = session.options.sample,
                             .earlier_blocks = kernel.blocks,
                             .noted = session.options.keeps_going ? &session.report.noted : nullptr,
                             .heap = session.device_heap.get(),
                             .gpu = session.options.gpu};
    request.registers = registers_of(kernel);
    kernel.blocks += shape.grid.count();
    if (kernel.unwatched != nullptr) {
      request.unwatched_call = [&] { call.run(kernel.unwatched); };
    }
    if (session.options.watch) request.watcher = session.options.watch(*kernel.library, request);
    auto result = plain::run(*kernel.library, request);
    warn_of_skipped(session, result.skipped);
    warn(session, result.equal_stores, "All store the same value, so GPUs give the same result");
    warn(session, result.undefined_reads, "GPUs continue with some value");
    if (result.counters.shared_bytes - shape.shared_bytes > kMostFixedShared) {
      session.note(cudaErrorInvalidValue, "launch", place,
                   fmt::format("{} has more than {} bytes of __shared__ arrays of fixed sizes",
                               kernel.name, kMostFixedShared));
    }
    keep(session, {kernel.name, where.file_name(), where.line(), shape, std::move(result.counters),
                   std::move(result.costs)});
  } catch (const KernelFault& fault) {
    session.report.fault = fault;
    session.end(1, "a fault of a kernel");
  }
  session.device_heap->close();
  session.heap.end_kernel(fmt::format("{} ({})", kernel.name, session.text_of(place)));
  return cudaSuccess;
}

}  // namespace

void learn_parameters(Kernel& kernel, const void* stub) {
  if (!kernel.places) kernel.places = probe_parameters(stub);
}

void note_use() {
  if (!is_probing()) Session::current().is_runtime_used = true;
}

namespace {

/// A launch with these values of the parameters, which it keeps.
Operation launch_operation(Kernel& kernel, Place place, const emulation::LaunchShape& shape,
                           std::span<const void* const> values) {
  const auto call = std::make_shared<const KernelCall>(*kernel.places, values);
  return [&kernel, place, shape, call] { return launch(kernel, place, shape, *call); };
}

}  // namespace

Operation kernel_operation(const char* call, Place place, const KernelNode& node) {
  auto* kernel = kernel_of(call, place, node.kernel);
  if (kernel == nullptr) return {};
  learn_parameters(*kernel, node.kernel);
  const auto& [grid, block] = std::tie(node.grid, node.block);
  return launch_operation(*kernel, place,
                          {{grid[0], grid[1], grid[2]},
                           {block[0], block[1], block[2]},
                           node.shared_bytes,
                           node.is_cooperative},
                          {node.arguments, kernel->places->size()});
}

void register_kernel(const void* stub, const char* symbol) {
  auto& session = Session::current();
  const auto& library = session.newest_library();
  const auto function_of = [&](const std::string& name) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
    return reinterpret_cast<const void*>(library.address_of(name));
  };
  auto name = kernel_name(symbol);
  const bool is_taken = std::ranges::any_of(session.kernels, [&](const auto& each) {
    return each.second.name == name && each.second.library == &library;
  });
  if (is_taken) name = plain::demangle(symbol);
  session.kernels[stub] = {.name = std::move(name),
                           .function = function_of(symbol),
                           .unwatched = function_of(std::string(symbol) + plain::kUnwatched),
                           .places = std::nullopt,
                           .shared_bytes = library.shared_bytes_of(symbol),
                           .symbol = symbol,
                           .library = &library};
}

void register_variable(const void* shadow, const char* symbol, bool is_constant) {
  auto& session = Session::current();
  auto& library = session.newest_library();
  const auto address = library.address_of(symbol);
  if (is_constant) library.note_constant(address);
  const auto* variable = library.variable_at(address);
  if (variable == nullptr) return;
  session.variables[shadow] = *variable;
  if (session.options.gpus > 1 && !library.is_read_only(address)) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
    session.devices.add_variable({reinterpret_cast<std::byte*>(address), variable->bytes});
  }
}

void end(int status, const char* reason, Place place) {
  auto& session = Session::current();
  std::string text = reason;
  if (!text.empty()) text += " (" + session.text_of(place) + ")";
  session.end(status, std::move(text));
}

const plain::Variable* variable_of(const char* call, Place place, const void* symbol) {
  auto& session = Session::current();
  const auto found = session.variables.find(symbol);
  if (found != session.variables.end()) return &found->second;
  session.mistake(cudaErrorInvalidSymbol, call, place,
                  "the symbol is no variable of __device__ or __constant__; pass the variable "
                  "itself, not its name or a copy of its address");
  return nullptr;
}

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
cudaError_t triptychConfigure(Place place, const unsigned* grid, const unsigned* block,
                              size_t shared_bytes, cudaStream_t stream) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  session.configurations.push_back(
      {{{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes}, stream, place});
  session.arguments.clear();
  return cudaSuccess;
}

cudaError_t cudaSetupArgument(Place, const void* value, size_t bytes, size_t offset) {
  if (is_probing()) {
    probe_argument(value, bytes, offset);
    return cudaSuccess;
  }
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  session.arguments.resize(std::max(session.arguments.size(), offset + bytes));
  std::memcpy(session.arguments.data() + offset, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaLaunch(Place, const void* stub) {
  if (is_probing()) return cudaSuccess;
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  if (session.configurations.empty()) return cudaErrorInvalidConfiguration;
  const auto configuration = session.configurations.back();
  session.configurations.pop_back();
  const auto arguments = std::move(session.arguments);
  session.arguments.clear();
  auto* kernel = kernel_of("launch", configuration.place, stub);
  if (kernel == nullptr) return session.last_error;
  learn_parameters(*kernel, stub);
  std::vector<const void*> values;
  for (const auto& place : *kernel->places) values.push_back(arguments.data() + place.offset);
  return submit(
      "launch", configuration.place, configuration.stream,
      {.type = cudaGraphNodeTypeKernel,
       .run = launch_operation(*kernel, configuration.place, configuration.shape, values)});
}

cudaError_t triptychLaunch(Place place, const KernelNode* launch, cudaStream_t stream) {
  const auto* call = launch->is_cooperative ? "cudaLaunchCooperativeKernel" : "cudaLaunchKernel";
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto operation = kernel_operation(call, place, *launch);
  if (!operation) return session.last_error;
  return submit(call, place, stream,
                {.type = cudaGraphNodeTypeKernel, .run = std::move(operation)});
}

cudaError_t triptychFuncAttributes(Place place, cudaFuncAttributes* attributes, const void* stub) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* kernel = kernel_of("cudaFuncGetAttributes", place, stub);
  if (kernel == nullptr) return session.last_error;
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->sharedSizeBytes = kernel->shared_bytes;
  attributes->numRegs = registers_of(*kernel);
  attributes->ptxVersion = attributes->binaryVersion = session.options.gpu->architecture();
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(kernel->most_dynamic_bytes);
  attributes->preferredShmemCarveout = -1;
  return cudaSuccess;
}

cudaError_t triptychSetFuncAttribute(Place place, const void* stub, cudaFuncAttribute attribute,
                                     int value) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  auto* kernel = kernel_of("cudaFuncSetAttribute", place, stub);
  if (kernel == nullptr) return session.last_error;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  const int most = multiprocessor_of(*session.options.gpu).block_shared_bytes;
  if (value < 0 || value > most) {
    return session.mistake(cudaErrorInvalidValue, "cudaFuncSetAttribute", place,
                           fmt::format("{} bytes of dynamic shared memory; {} has {} for a block",
                                       value, session.options.gpu->name, most));
  }
  kernel->most_dynamic_bytes = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t triptychOccupancy(Place place, int* blocks, const void* stub, int threads,
                              size_t shared_bytes) {
  auto& session = Session::current();
  const std::lock_guard lock(session.mutex);
  const auto* kernel = kernel_of("cudaOccupancy", place, stub);
  if (kernel == nullptr) return session.last_error;
  *blocks =
      emulation::occupancy(multiprocessor_of(*session.options.gpu),
                           {threads, registers_of(*kernel), shared_bytes + kernel->shared_bytes})
          .blocks;
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls

namespace triptych::cuda::program {

const Runtime& runtime_table() {
  static const Runtime table = {
#define TRIPTYCH_CALL(name, arguments, ...) .name = calls::name,
#include "backends/cuda/program/calls.inc"
#undef TRIPTYCH_CALL
#define TRIPTYCH_DRIVER_CALL(result, name, arguments, ...) .name = calls::name,
#include "backends/cuda/program/driver_calls.inc"
#undef TRIPTYCH_DRIVER_CALL
      .note_use = calls::note_use,
      .register_kernel = calls::register_kernel,
      .register_variable = calls::register_variable,
      .register_texture = calls::register_texture,
      .end = calls::end,
  };
  return table;
}

}  // namespace triptych::cuda::program
