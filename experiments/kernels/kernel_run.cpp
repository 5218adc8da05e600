// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/kernel_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/plain/launch.h"
#include "core/base/mapped.h"
#include "core/base/nearest_name.h"
#include "core/io/npy.h"
#include "experiments/kernels/kernel_arguments.h"

namespace triptych::kernels {
namespace {

using cuda::plain::KernelEntry;
using cuda::plain::KernelLibrary;

/// Most of `__shared__` arrays with sizes fixed in the source: nvcc refuses more.
constexpr std::size_t kMostFixedShared = 48 * 1024;

const KernelEntry& find_kernel(const KernelLibrary& library, const std::string& name) {
  const auto kernels = library.kernels();
  auto names = mapped<std::string>(kernels, [](const auto& kernel) { return kernel.name; });
  if (name.empty()) {
    if (kernels.size() == 1) return kernels[0];
    throw InvalidArgument(
        fmt::format("there are several kernels; choose one with the option "
                    "kernel: {}",
                    fmt::join(names, ", ")));
  }
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return kernels[static_cast<std::size_t>(found - names.begin())];
  const auto meant = nearest_name(name, names);
  throw InvalidArgument(fmt::format("there is no kernel \"{}\"{}; there is {}", name,
                                    meant.empty() ? "" : fmt::format(" (\"{}\"?)", meant),
                                    fmt::join(names, ", ")));
}

cuda::emulation::Dim3 dimensions(const std::vector<std::int64_t>& sizes, const char* what) {
  if (sizes.empty() || sizes.size() > 3 ||
      std::ranges::any_of(sizes, [](std::int64_t size) { return size < 1 || size > 0x7FFFFFFF; })) {
    throw InvalidArgument(fmt::format("a {} has one to three sizes from 1 on: 16,16", what));
  }
  const auto at = [&](std::size_t i) {
    return i < sizes.size() ? static_cast<unsigned>(sizes[i]) : 1U;
  };
  return {at(0), at(1), at(2)};
}

std::vector<KernelArgument> read_arguments(const KernelEntry& kernel,
                                           const KernelRunRequest& request) {
  if (request.arguments.size() != kernel.count) {
    throw InvalidArgument(fmt::format("{} takes {} arguments, and {} were given", signature(kernel),
                                      kernel.count, request.arguments.size()));
  }
  std::vector<KernelArgument> arguments;
  arguments.reserve(kernel.count);
  for (unsigned i = 0; i < kernel.count; ++i) {
    arguments.push_back(read_argument(request.arguments[i], kernel.parameters[i],
                                      static_cast<int>(i + 1), request.seed));
  }
  return arguments;
}

/// Sets a `__constant__` or `__device__` variable: "mask=mask.npy".
void set_variable(const KernelLibrary& library, const std::string& text) {
  const auto equals = text.find('=');
  const auto name = text.substr(0, equals);
  std::vector<cuda::plain::Variable> variables(library.constant_variables().begin(),
                                               library.constant_variables().end());
  variables.insert(variables.end(), library.global_variables().begin(),
                   library.global_variables().end());
  const auto found = std::ranges::find(variables, name, &cuda::plain::Variable::name);
  if (equals == std::string::npos || found == variables.end()) {
    auto names = mapped<std::string>(variables, [](const auto& variable) { return variable.name; });
    throw InvalidArgument(fmt::format(
        "\"{}\" sets no variable: write NAME=FILE.npy for one of those of __constant__ or "
        "__device__ (there is {})",
        text, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  }
  const Tensor tensor = load_npy(text.substr(equals + 1));
  if (tensor.bytes().size() != found->bytes) {
    throw InvalidArgument(fmt::format("{} has {} bytes, and {} has {}", name, found->bytes,
                                      text.substr(equals + 1), tensor.bytes().size()));
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a symbol's value
  std::memcpy(reinterpret_cast<void*>(found->begin), tensor.bytes().data(), found->bytes);
}

cuda::plain::Launch launch_of(const KernelEntry& kernel, const KernelRunRequest& request,
                              std::vector<KernelArgument>& arguments) {
  cuda::plain::Launch launch;
  launch.kernel = kernel.name;
  launch.shape = {dimensions(request.grid, "grid"), dimensions(request.block, "block"),
                  static_cast<std::size_t>(request.shared_bytes)};
  launch.threads = request.threads;
  launch.most_steps = static_cast<std::uint64_t>(request.most_steps);
  launch.barriers_skip_ended = request.skip_ended;
  launch.sample = static_cast<std::uint64_t>(request.sample);
  launch.gpu = request.gpu;
  const auto registers = request.registers.find(kernel.name);
  if (registers != request.registers.end()) launch.registers = registers->second;
  std::vector<void*> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& argument = arguments[i];
    values.push_back(argument.value.data());
    if (!argument.memory) continue;
    const auto bytes = argument.memory->bytes();
    launch.arrays.push_back({.name = fmt::format("argument {} ({})", i + 1, argument.text),
                             .data = bytes.data(),
                             .bytes = bytes.size(),
                             .element_bytes = dtype_size(argument.spec->dtype),
                             .is_undefined = argument.is_undefined});
  }
  launch.call = [&kernel, values = std::move(values)] { kernel.call(values.data()); };
  return launch;
}

std::string warning_of(const cuda::emulation::SkippedThreads& skipped) {
  return fmt::format(
      "barriers that opened although threads of the block had ended: {}. The first is at {}:{}, "
      "where {} threads had ended. GPUs do so, but CUDA leaves it undefined",
      skipped.barriers, cuda::emulation::file_of(skipped.where), skipped.where.line(),
      skipped.ended);
}

}  // namespace

std::string signature(const KernelEntry& kernel) {
  std::vector<std::string_view> types;
  types.reserve(kernel.count);
  for (unsigned i = 0; i < kernel.count; ++i) types.emplace_back(kernel.parameters[i].type);
  return fmt::format("{}({})", kernel.name, fmt::join(types, ", "));
}

KernelRun run_kernel(const KernelLibrary& library, const KernelRunRequest& request) {
  const auto& kernel = find_kernel(library, request.kernel);
  for (const auto& text : request.constants) set_variable(library, text);
  auto arguments = read_arguments(kernel, request);
  auto launch = launch_of(kernel, request, arguments);
  if (request.watch) launch.watcher = request.watch(library, launch);
  KernelRun run;
  if (request.keeps_going) launch.noted = &run.noted;
  launch.last_first = request.last_first;
  run.kernel = kernel.name;
  for (unsigned i = 0; i < kernel.count; ++i)
    run.parameters.emplace_back(kernel.parameters[i].type);
  try {
    auto result = cuda::plain::run(library, launch);
    run.counters = std::move(result.counters);
    run.costs = std::move(result.costs);
    if (result.skipped.barriers > 0) run.warnings.push_back(warning_of(result.skipped));
  } catch (const KernelFault& fault) {
    run.fault = fault;
    return run;
  }
  const auto fixed = run.counters.shared_bytes - launch.shape.shared_bytes;
  if (fixed > kMostFixedShared) {
    throw InvalidArgument(
        fmt::format("{} has {} bytes of __shared__ arrays of fixed sizes; a GPU "
                    "gives {}: take extern __shared__ for more",
                    kernel.name, fixed, kMostFixedShared));
  }
  for (unsigned i = 0; i < kernel.count; ++i) {
    if (!arguments[i].memory || kernel.parameters[i].is_const) continue;
    KernelOutput output = {static_cast<int>(i + 1), Tensor(*arguments[i].spec)};
    std::ranges::copy(arguments[i].memory->bytes(), output.tensor.bytes().begin());
    run.outputs.push_back(std::move(output));
  }
  return run;
}

}  // namespace triptych::kernels
