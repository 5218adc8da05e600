// The compiler of modules as the emulated driver API and NVRTC use it while a program runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace triptych::cuda::program {

/// A program of NVRTC.
struct ModuleRequest {
  std::string name, source;                                  ///< a file's name and content
  std::vector<std::pair<std::string, std::string>> headers;  ///< name and content
  std::vector<std::string> expressions;                      ///< names of kernels and variables
  std::vector<std::string> options;  ///< of the compiler: "-DN=3", "-Iinclude"
  bool contract = true;              ///< false: a * b + c is rounded after each operation
  bool for_both = false;             ///< functions without a word are for the device, too
  int architecture = 90;
  bool has_unwatched = false;  ///< with the kernels for blocks outside of a sample
};

struct ModuleBuild {
  std::string image;                 ///< empty: it does not compile
  std::string log;                   ///< the compiler's words
  std::vector<std::string> symbols;  ///< of the expressions
};

/// The libraries of an image, as program.h names them.
struct ModuleFiles {
  std::filesystem::path folder;  ///< of this call only
  std::string name;              ///< of the source
  int architecture = 0;
};

class ModuleBuilder {
 public:
  virtual ~ModuleBuilder() = default;
  virtual ModuleBuild build(const ModuleRequest& request) = 0;
  /// Throws InvalidArgument for an image that is not of build(). `image` ends with a 0.
  virtual ModuleFiles unpack(const char* image) = 0;
  /// The command that builds a module's file.
  virtual std::string command_for(const std::string& file) const = 0;
};

}  // namespace triptych::cuda::program
