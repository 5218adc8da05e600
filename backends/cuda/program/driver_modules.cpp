// The driver API: modules, their kernels and variables, and launches.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "backends/cuda/program/driver.h"
#include "backends/cuda/program/program.h"
#include "core/base/error.h"

namespace triptych::cuda::program::calls {
namespace {

/// Opens the libraries of a module. Its host part registers the kernels and variables.
const plain::KernelLibrary* open_module(const ModuleFiles& files) {
  auto& session = Session::current();
  session.modules.push_back(std::make_unique<plain::KernelLibrary>(files.folder / kKernelLibrary));
  const auto& library = *session.modules.back();
  if (dlopen((files.folder / kHostLibrary).c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const std::string reason = dlerror();
    session.modules.pop_back();
    throw InvalidArgument("the module cannot be linked: " + reason);
  }
  // Kernels of different modules may have one name. Those of a source that is loaded twice count as
  // one.
  const auto& modules = Driver::current().modules;
  std::vector<std::string> others;
  for (const auto& entry : session.kernels) {
    const auto& kernel = entry.second;
    const bool is_same = std::ranges::any_of(modules, [&](const auto& each) {
      return each.second.library == kernel.library && each.second.name == files.name;
    });
    if (kernel.library != &library && !is_same) others.push_back(kernel.name);
  }
  for (auto& [stub, kernel] : session.kernels) {
    if (kernel.library != &library) continue;
    if (std::ranges::count(others, kernel.name) != 0) kernel.name += " of " + files.name;
  }
  return &library;
}

CUresult load(const char* call, Place place, CUmodule* module, const void* image) {
  const DriverCall scope(call);
  if (const auto missing = require_context(call, place)) return missing;
  auto& session = Session::current();
  if (module == nullptr || image == nullptr) {
    return mistake(CUDA_ERROR_INVALID_VALUE, call, place, "the image or the module is null");
  }
  try {
    const auto files = session.options.modules->unpack(static_cast<const char*>(image));
    if (files.architecture > session.options.gpu->architecture()) {
      return mistake(
          CUDA_ERROR_NO_BINARY_FOR_GPU, call, place,
          fmt::format("the module of {} was built for compute capability {}.{}, and {} has {}.{}; "
                      "build it for this GPU, or choose another with the option gpu",
                      files.name, files.architecture / 10, files.architecture % 10,
                      session.options.gpu->name, session.options.gpu->architecture() / 10,
                      session.options.gpu->architecture() % 10));
    }
    const auto* library = open_module(files);
    *module = new_driver_handle<CUmodule>();
    Driver::current().modules[*module] = {files.name, library, current_context(), ""};
  } catch (const Error& error) {
    return mistake(CUDA_ERROR_INVALID_IMAGE, call, place, error.what());
  }
  return CUDA_SUCCESS;
}

/// Content of a file. nullopt, with a finding: it cannot be read.
std::optional<std::string> read(const char* call, Place place, const char* file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  if (stream) content << stream.rdbuf();
  if (stream && !content.view().empty()) return content.str();
  mistake(CUDA_ERROR_FILE_NOT_FOUND, call, place,
          fmt::format("there is no file \"{}\"; build it from its source: {}", file,
                      Session::current().options.modules->command_for(file)));
  return std::nullopt;
}

/// The module. nullptr, with a finding: none.
const DriverModule* module_of(const char* call, Place place, CUmodule module) {
  const auto& all = Driver::current().modules;
  const auto found = all.find(module);
  if (found == all.end()) {
    mistake(CUDA_ERROR_INVALID_HANDLE, call, place,
            "the handle is no module; cuModuleLoad and cuModuleLoadData give one");
    return nullptr;
  }
  if (found->second.unloaded.empty()) return &found->second;
  mistake(CUDA_ERROR_INVALID_HANDLE, call, place,
          fmt::format("the module of {} was unloaded at {}", found->second.name,
                      found->second.unloaded));
  return nullptr;
}

/// "; its kernels are a, b"
std::string list_of(const char* what, std::vector<std::string> names) {
  if (names.empty()) return fmt::format("; it has no {}", what);
  std::ranges::sort(names);
  return fmt::format("; its {} are {}", what, fmt::join(names, ", "));
}

/// The kernel behind a function. nullptr, with a finding: none.
Kernel* kernel_of(const char* call, Place place, CUfunction function) {
  auto& session = Session::current();
  const auto found = session.kernels.find(function);
  if (found == session.kernels.end()) {
    mistake(CUDA_ERROR_INVALID_HANDLE, call, place,
            "the handle is no kernel; cuModuleGetFunction gives one");
    return nullptr;
  }
  for (const auto& [handle, module] : Driver::current().modules) {
    if (module.library != found->second.library || module.unloaded.empty()) continue;
    mistake(CUDA_ERROR_INVALID_HANDLE, call, place,
            fmt::format("{} belongs to the module of {}, which was unloaded at {}",
                        found->second.name, module.name, module.unloaded));
    return nullptr;
  }
  return &found->second;
}

/// The values of a launch, from an array of pointers. Empty, with a finding: one is missing.
std::vector<const void*> values_of_pointers(Place place, const Kernel& kernel, void** pointers) {
  std::vector<const void*> values;
  for (std::size_t i = 0; i < kernel.places->size(); ++i) {
    if (pointers == nullptr || pointers[i] == nullptr) {
      mistake(CUDA_ERROR_INVALID_VALUE, "cuLaunchKernel", place,
              fmt::format("{} has {} parameters, and the address of number {} is missing",
                          kernel.name, kernel.places->size(), i + 1));
      return {};
    }
    values.push_back(pointers[i]);
  }
  return values;
}

/// The values of a launch, from one buffer. Empty, with a finding: it is too small.
std::vector<const void*> values_of_buffer(Place place, const Kernel& kernel, void** extra) {
  const std::byte* buffer = nullptr;
  std::uint32_t bytes = 0;  // some programs pass the address of an int
  for (; *extra != nullptr; extra += 2) {
    const auto what = reinterpret_cast<std::uintptr_t>(*extra);
    if (what == 1) buffer = static_cast<const std::byte*>(extra[1]);
    if (what == 2) std::memcpy(&bytes, extra[1], sizeof(bytes));
    if (what > 2) break;
  }
  const auto& last = kernel.places->back();
  const auto needed = last.offset + last.bytes;
  if (buffer == nullptr || bytes < needed) {
    mistake(CUDA_ERROR_INVALID_VALUE, "cuLaunchKernel", place,
            fmt::format("the parameters of {} have {} bytes, and the buffer has {}", kernel.name,
                        needed, buffer == nullptr ? 0 : bytes));
    return {};
  }
  std::vector<const void*> values;
  for (const auto& each : *kernel.places) values.push_back(buffer + each.offset);
  return values;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
CUresult cuModuleLoad(Place place, CUmodule* module, const char* file) {
  const DriverCall scope("cuModuleLoad");
  const auto image = read("cuModuleLoad", place, file);
  return image ? load("cuModuleLoad", place, module, image->c_str()) : CUDA_ERROR_FILE_NOT_FOUND;
}
CUresult cuModuleLoadData(Place place, CUmodule* module, const void* image) {
  return load("cuModuleLoadData", place, module, image);
}
CUresult cuModuleLoadDataEx(Place place, CUmodule* module, const void* image, unsigned,
                            CUjit_option*, void**) {
  return load("cuModuleLoadDataEx", place, module, image);
}
CUresult cuModuleLoadFatBinary(Place place, CUmodule* module, const void* image) {
  return load("cuModuleLoadFatBinary", place, module, image);
}
CUresult cuModuleUnload(Place place, CUmodule module) {
  const DriverCall scope("cuModuleUnload");
  if (module_of("cuModuleUnload", place, module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Driver::current().modules[module].unloaded = Session::current().text_of(place);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(Place place, CUfunction* function, CUmodule module, const char* name) {
  const DriverCall scope("cuModuleGetFunction");
  const auto* of = module_of("cuModuleGetFunction", place, module);
  if (of == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<std::string> names;
  for (const auto& [stub, kernel] : Session::current().kernels) {
    if (kernel.library != of->library) continue;
    if (kernel.symbol == name) {
      *function = static_cast<CUfunction>(const_cast<void*>(stub));
      return CUDA_SUCCESS;
    }
    names.push_back(kernel.symbol == kernel.name
                        ? kernel.symbol
                        : fmt::format("{} ({})", kernel.symbol, kernel.name));
  }
  return mistake(CUDA_ERROR_NOT_FOUND, "cuModuleGetFunction", place,
                 fmt::format("the module of {} has no kernel \"{}\"{}. A kernel that is not "
                             "extern \"C\" has a longer name (nvrtcGetLoweredName)",
                             of->name, name, list_of("kernels", std::move(names))));
}
CUresult cuModuleGetGlobal(Place place, CUdeviceptr* pointer, size_t* bytes, CUmodule module,
                           const char* name) {
  const DriverCall scope("cuModuleGetGlobal");
  const auto* of = module_of("cuModuleGetGlobal", place, module);
  if (of == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto address = of->library->address_of(name);
  // A static variable.
  if (address == 0)
    address = of->library->address_of(fmt::format("_ZL{}{}", std::strlen(name), name));
  const plain::Variable* variable = nullptr;
  std::vector<std::string> names;
  for (const auto& [shadow, each] : Session::current().variables) {
    if (each.begin == address) variable = &each;
    if (of->library->variable_at(each.begin) != nullptr) names.push_back(each.name);
  }
  if (variable == nullptr) {
    return mistake(CUDA_ERROR_NOT_FOUND, "cuModuleGetGlobal", place,
                   fmt::format("the module of {} has no variable \"{}\"{}", of->name, name,
                               list_of("variables", std::move(names))));
  }
  if (pointer != nullptr) *pointer = variable->begin;
  if (bytes != nullptr) *bytes = variable->bytes;
  return CUDA_SUCCESS;
}

CUresult cuLinkCreate(Place place, unsigned count, CUjit_option* options, void** values,
                      CUlinkState* state) {
  const DriverCall scope("cuLinkCreate");
  if (const auto missing = require_context("cuLinkCreate", place)) return missing;
  for (unsigned i = 0; i < count; ++i) {
    const bool is_log =
        options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER;
    if (is_log && values[i] != nullptr) *static_cast<char*>(values[i]) = '\0';
    // The value itself is the time.
    if (options[i] == CU_JIT_WALL_TIME) values[i] = nullptr;
  }
  *state = new_driver_handle<CUlinkState>();
  Driver::current().links[*state].clear();
  return CUDA_SUCCESS;
}
// NOLINTNEXTLINE(readability-function-size): CUDA's own parameters and the place of the call.
CUresult cuLinkAddData(Place place, CUlinkState state, CUjitInputType, void* image, size_t,
                       const char*, unsigned, CUjit_option*, void**) {
  constexpr auto kCall = "cuLinkAddData";
  const DriverCall scope(kCall);
  const auto found = Driver::current().links.find(state);
  if (found == Driver::current().links.end()) {
    return mistake(CUDA_ERROR_INVALID_HANDLE, kCall, place,
                   "the link was not created, or was destroyed");
  }
  if (!found->second.empty()) {
    return mistake(CUDA_ERROR_NOT_SUPPORTED, kCall, place,
                   "linking of several modules is not emulated; build their sources as one");
  }
  try {
    Session::current().options.modules->unpack(static_cast<const char*>(image));
  } catch (const Error& error) {
    return mistake(CUDA_ERROR_INVALID_IMAGE, kCall, place, error.what());
  }
  found->second = static_cast<const char*>(image);
  return CUDA_SUCCESS;
}
CUresult cuLinkAddFile(Place place, CUlinkState state, CUjitInputType type, const char* file,
                       unsigned count, CUjit_option* options, void** values) {
  const DriverCall scope("cuLinkAddFile");
  auto image = read("cuLinkAddFile", place, file);
  if (!image) return CUDA_ERROR_FILE_NOT_FOUND;
  return cuLinkAddData(place, state, type, image->data(), image->size(), file, count, options,
                       values);
}
CUresult cuLinkComplete(Place place, CUlinkState state, void** image, size_t* bytes) {
  const DriverCall scope("cuLinkComplete");
  const auto found = Driver::current().links.find(state);
  if (found == Driver::current().links.end() || found->second.empty()) {
    return mistake(CUDA_ERROR_INVALID_HANDLE, "cuLinkComplete", place,
                   "the link was not created, was destroyed, or has no input");
  }
  *image = found->second.data();
  if (bytes != nullptr) *bytes = found->second.size() + 1;
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(Place place, CUlinkState state) {
  const DriverCall scope("cuLinkDestroy");
  if (Driver::current().links.erase(state) == 1) return CUDA_SUCCESS;
  return mistake(CUDA_ERROR_INVALID_HANDLE, "cuLinkDestroy", place,
                 "the link was not created, or was destroyed");
}

CUresult cuFuncGetAttribute(Place place, int* value, CUfunction_attribute attribute,
                            CUfunction function) {
  constexpr auto kCall = "cuFuncGetAttribute";
  const DriverCall scope(kCall);
  if (kernel_of(kCall, place, function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  cudaFuncAttributes of = {};
  triptychFuncAttributes(place, &of, function);
  const int values[] = {of.maxThreadsPerBlock,
                        static_cast<int>(of.sharedSizeBytes),
                        static_cast<int>(of.constSizeBytes),
                        static_cast<int>(of.localSizeBytes),
                        of.numRegs,
                        of.ptxVersion,
                        of.binaryVersion,
                        of.cacheModeCA,
                        of.maxDynamicSharedSizeBytes,
                        of.preferredShmemCarveout};
  if (attribute < 0 || static_cast<std::size_t>(attribute) >= std::size(values)) {
    return mistake(CUDA_ERROR_INVALID_VALUE, kCall, place,
                   fmt::format("the attribute {} is not emulated", static_cast<int>(attribute)));
  }
  *value = values[attribute];
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(Place place, CUfunction function, CUfunction_attribute attribute,
                            int value) {
  const DriverCall scope("cuFuncSetAttribute");
  if (kernel_of("cuFuncSetAttribute", place, function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return result_of(
      triptychSetFuncAttribute(place, function, static_cast<cudaFuncAttribute>(attribute), value));
}
CUresult cuFuncSetCacheConfig(Place place, CUfunction function, CUfunc_cache) {
  const DriverCall scope("cuFuncSetCacheConfig");
  return kernel_of("cuFuncSetCacheConfig", place, function) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                                       : CUDA_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): CUDA's own parameters and the place of the call.
CUresult cuLaunchKernel(Place place, CUfunction function, unsigned grid_x, unsigned grid_y,
                        unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                        unsigned shared_bytes, CUstream stream, void** parameters, void** extra) {
  constexpr auto kCall = "cuLaunchKernel";
  const DriverCall scope(kCall);
  if (const auto missing = require_context(kCall, place)) return missing;
  auto* kernel = kernel_of(kCall, place, function);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  learn_parameters(*kernel, function);
  std::vector<const void*> values;
  if (!kernel->places->empty()) {
    const bool is_buffer = parameters == nullptr && extra != nullptr;
    values = is_buffer ? values_of_buffer(place, *kernel, extra)
                       : values_of_pointers(place, *kernel, parameters);
    if (values.empty()) return CUDA_ERROR_INVALID_VALUE;
  }
  const KernelNode launch = {.kernel = function,
                             .grid = {grid_x, grid_y, grid_z},
                             .block = {block_x, block_y, block_z},
                             .shared_bytes = shared_bytes,
                             .arguments = const_cast<void**>(values.data()),
                             .is_cooperative = false};
  return result_of(triptychLaunch(place, &launch, stream));
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(Place place, int* blocks, CUfunction function,
                                                     int threads, size_t shared_bytes) {
  constexpr auto kCall = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
  const DriverCall scope(kCall);
  if (kernel_of(kCall, place, function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return result_of(triptychOccupancy(place, blocks, function, threads, shared_bytes));
}
// NOLINTEND(readability-identifier-naming)

}  // namespace triptych::cuda::program::calls
