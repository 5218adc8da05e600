// The GPU of the interpreter: modules as nvcc compiled them in, kernels by the functions that
// launch them, and a record of executed code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/machine.h"

namespace triptych::ptx {

/// One translation unit's kernels. Its text is read when one of them is first asked for.
class Module {
 public:
  explicit Module(const void* fat_binary) : fat_binary_(fat_binary) {}
  /// Throws Fault for text that cannot be read.
  const ModuleText& text();
  const GlobalAddresses& addresses() const { return addresses_; }

 private:
  const void* fat_binary_;
  std::string ptx_;
  std::optional<ModuleText> text_;  ///< keeps a view of it
  GlobalAddresses addresses_;
  std::vector<std::vector<std::byte>> variables_;
};

class Kernel {
 public:
  Kernel(Module& module, std::string name) : module_(module), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  /// Throws Fault for an instruction that is not known.
  const Program& program();
  /// Null before the first launch.
  const Program* program_if_read() const { return program_.get(); }

  std::size_t most_shared_bytes = 48 * 1024;  ///< that a launch may ask for
  std::uint64_t launches = 0;

 private:
  Module& module_;
  std::string name_;
  std::unique_ptr<Program> program_;
};

class Device {
 public:
  /// The only one. When the process ends it adds the record to the file that TRIPTYCH_PTX_REPORT
  /// names.
  static Device& instance();
  ~Device();

  Module& add_module(const void* fat_binary);
  void add_kernel(Module& module, const void* function, std::string name);
  std::vector<const Kernel*> kernels() const;
  /// Null when the function launches none.
  Kernel* kernel_of(const void* function);

  /// Throws Fault.
  void launch(Kernel& kernel, Dim3 grid, Dim3 block, std::size_t shared_bytes,
              std::vector<std::byte> parameters);
  /// The bytes that a launch's arguments are: pointers to the values of all parameters.
  std::vector<std::byte> pack(Kernel& kernel, void* const* arguments);

  GlobalMemory& memory() { return memory_; }
  std::mutex& mutex() { return mutex_; }

 private:
  void report() const;

  std::mutex mutex_;
  GlobalMemory memory_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::map<const void*, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace triptych::ptx
