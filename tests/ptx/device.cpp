// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/ptx/fat_binary.h"

namespace triptych::ptx {

const ModuleText& Module::text() {
  if (text_) return *text_;
  ptx_ = ptx_of(fat_binary_);
  text_.emplace(ptx_);
  for (const auto& variable : text_->variables()) {
    if (variable.space == Space::Shared) {
      if (variable.bytes != 0) throw Fault("shared memory of a module with a size is not known");
      addresses_[variable.name] = kDynamicShared;
      continue;
    }
    // Space for alignment. A variable's memory never moves.
    auto& memory = variables_.emplace_back(variable.bytes + variable.alignment);
    const auto at = reinterpret_cast<std::uint64_t>(memory.data());
    const auto address = (at + variable.alignment - 1) / variable.alignment * variable.alignment;
    std::memcpy(memory.data() + (address - at), variable.initial.data(), variable.initial.size());
    addresses_[variable.name] = address;
    Device::instance().memory().add(reinterpret_cast<const void*>(address), variable.bytes);
  }
  return *text_;
}

const Program& Kernel::program() {
  if (!program_) program_ = make_program(module_.text().read(name_), module_.addresses());
  return *program_;
}

Device& Device::instance() {
  static Device device;
  return device;
}

Device::~Device() { report(); }

Module& Device::add_module(const void* fat_binary) {
  return *modules_.emplace_back(std::make_unique<Module>(fat_binary));
}

void Device::add_kernel(Module& module, const void* function, std::string name) {
  kernels_[function] = std::make_unique<Kernel>(module, std::move(name));
}

std::vector<const Kernel*> Device::kernels() const {
  std::vector<const Kernel*> list;
  for (const auto& [function, kernel] : kernels_) list.push_back(kernel.get());
  return list;
}

Kernel* Device::kernel_of(const void* function) {
  const auto found = kernels_.find(function);
  return found == kernels_.end() ? nullptr : found->second.get();
}

std::vector<std::byte> Device::pack(Kernel& kernel, void* const* arguments) {
  const auto& program = kernel.program();
  std::vector<std::byte> bytes(program.parameter_bytes);
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const auto& parameter = program.parameters[i];
    std::memcpy(bytes.data() + parameter.offset, arguments[i], parameter.bytes);
  }
  return bytes;
}

void Device::launch(Kernel& kernel, Dim3 grid, Dim3 block, std::size_t shared_bytes,
                    std::vector<std::byte> parameters) {
  const auto& program = kernel.program();
  ++kernel.launches;
  run({program, memory_, grid, block, shared_bytes, std::move(parameters)});
}

/// A line for each kernel: launches, instructions, the executed ones among them, steps of warps,
/// name. For each instruction's name also its number in these kernels, and of executed ones.
void Device::report() const {
  const char* path = std::getenv("TRIPTYCH_PTX_REPORT");
  if (path == nullptr) return;
  std::string lines;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> names;
  for (const auto& [function, kernel] : kernels_) {
    std::uint64_t steps = 0, ran = 0, all = 0;
    if (const auto* program = kernel->program_if_read()) {
      all = program->steps.size();
      for (std::size_t i = 0; i < all; ++i) {
        const auto runs = program->runs[i];
        ran += runs != 0;
        steps += runs;
        auto& [written, executed] = names[program->names[i]];
        ++written;
        executed += runs;
      }
    }
    lines += fmt::format("kernel\t{}\t{}\t{}\t{}\t{}\n", kernel->launches, all, ran, steps,
                         kernel->name());
  }
  for (const auto& [name, counts] : names) {
    lines += fmt::format("instruction\t{}\t{}\t{}\n", counts.first, counts.second, name);
  }
  std::ofstream(path, std::ios::app) << lines;
}

}  // namespace triptych::ptx
