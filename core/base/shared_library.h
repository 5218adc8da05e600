// A vendor's library that is looked for when it is first needed: a program starts without it, and
// says where it was looked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace triptych {

/// Directories of a vendor's libraries, in addition to the dynamic linker's own places.
struct LibraryPlaces {
  std::string variable;  ///< of the environment, a toolkit's folder: "CUDA_PATH"
  std::string toolkit;   ///< where a toolkit lies by default: "/usr/local/cuda"
  std::string package;   ///< folder among Python's packages that has libraries in */lib: "nvidia"
};

/// The folders of `places` that exist, in the order of the search: the toolkit's, then those of the
/// packages of the Python installations that the environment names.
std::vector<std::string> library_folders(const LibraryPlaces& places);

/// The address of a function, which takes the type of the pointer that it is assigned to.
class LibrarySymbol {
 public:
  explicit LibrarySymbol(void* address) : address_(address) {}
  template <class Function>
  operator Function*() const {  // NOLINT(google-explicit-constructor): that is its purpose
    return reinterpret_cast<Function*>(address_);
  }

 private:
  void* address_;
};

/// Stays loaded until the program ends.
class SharedLibrary {
 public:
  /// `file` is its soname, "libnccl.so.2". The dynamic linker's places come first, so that
  /// LD_LIBRARY_PATH decides. Where it is missing or does not load, problem() says so.
  SharedLibrary(const std::string& file, const LibraryPlaces& places);
  /// The file of this absolute path, which may use the functions of this program or module.
  explicit SharedLibrary(const std::filesystem::path& file);

  /// Why nothing of it can be called, with the places where it was looked for. Empty: all can.
  const std::string& problem() const { return problem_; }
  /// The file that was loaded. Empty: none.
  const std::string& path() const { return path_; }
  /// A function. Null, and a problem, where the library has none of that name.
  LibrarySymbol find(const char* name);

 private:
  bool load(const std::string& file);

  void* handle_ = nullptr;
  std::string path_;
  std::string problem_;
};

}  // namespace triptych
