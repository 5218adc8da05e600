// SPDX-License-Identifier: Apache-2.0
#include "core/base/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/base/folder.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Folders within `folder` with names that start so, or links to some. In the order of their names.
std::vector<fs::path> folders_in(const fs::path& folder, const std::string& start) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& name : names_in(folder, ignored)) {
    if (name.starts_with(start) && fs::is_directory(folder / name, ignored)) {
      found.push_back(folder / name);
    }
  }
  return found;
}

/// Where Python installations may lie: the environment's own, those of the PATH, the user's.
std::vector<fs::path> python_prefixes() {
  std::vector<fs::path> prefixes;
  const auto add = [&](const fs::path& prefix) {
    // Nothing is loaded from the current directory.
    if (prefix.is_absolute() && std::ranges::find(prefixes, prefix) == prefixes.end()) {
      prefixes.push_back(prefix);
    }
  };
  add(variable("VIRTUAL_ENV"));
  add(variable("CONDA_PREFIX"));
  std::istringstream path(variable("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    const auto python = fs::path(folder) / "python3";
    std::error_code error;
    if (!python.is_absolute() || !fs::exists(python, error)) continue;
    add(fs::path(folder).lexically_normal().parent_path());
    const auto resolved = fs::canonical(python, error);
    if (!error) add(resolved.parent_path().parent_path());
  }
  if (const auto home = variable("HOME"); !home.empty()) add(fs::path(home) / ".local");
  add("/usr/local");
  return prefixes;
}

/// The name of a library without its version: "libnccl.so".
std::string without_version(const std::string& file) {
  const auto end = file.find(".so");
  return end == std::string::npos ? file : file.substr(0, end + 3);
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string list;
  for (const auto& text : texts) list += (list.empty() ? "" : ", ") + text;
  return list;
}

/// Why none of the folders gave the file: with one of another version, if there is one.
std::string not_found(const std::string& file, const std::vector<std::string>& folders) {
  auto text = "no " + file + " where the dynamic linker looks";
  if (!folders.empty()) text += ", nor in " + list_of(folders);
  for (const auto& folder : folders) {
    std::error_code ignored;
    for (const auto& name : names_in(folder, ignored)) {
      if (name.starts_with(without_version(file) + ".")) {
        return text + "; " + (fs::path(folder) / name).string() + " is of another version";
      }
    }
  }
  return text;
}

/// Python loads a module for itself alone. This opens its symbols to libraries that are loaded
/// later. Those of a program are open already.
void publish_own_symbols() {
  Dl_info own = {};
  if (dladdr(reinterpret_cast<void*>(&publish_own_symbols), &own) != 0 && own.dli_fname != nullptr)
    dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

}  // namespace

std::vector<std::string> library_folders(const LibraryPlaces& places) {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& folder) {
    std::error_code error;
    if (fs::is_directory(folder, error) &&
        std::ranges::find(folders, folder.string()) == folders.end()) {
      folders.push_back(folder.string());
    }
  };
  for (const fs::path toolkit : {variable(places.variable.c_str()), places.toolkit}) {
    if (!toolkit.is_absolute()) continue;
    for (const char* name : {"lib64", "lib"}) add(toolkit / name);
  }
  for (const auto& prefix : python_prefixes()) {
    for (const auto& version : folders_in(prefix / "lib", "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const auto& part : folders_in(version / packages / places.package, "")) {
          add(part / "lib");
        }
      }
    }
  }
  return folders;
}

SharedLibrary::SharedLibrary(const std::string& file, const LibraryPlaces& places) {
  if (load(file)) return;
  // The linker's words begin with the file that it does not find, which may be one that it needs.
  if (!problem_.starts_with(file + ": cannot open shared object file")) return;
  const auto folders = library_folders(places);
  for (const auto& folder : folders) {
    std::error_code error;
    const auto path = fs::path(folder) / file;
    if (!fs::exists(path, error)) continue;
    load(path.string());
    return;
  }
  problem_ = not_found(file, folders);
}

SharedLibrary::SharedLibrary(const std::filesystem::path& file) {
  publish_own_symbols();
  load(file.string());
}

bool SharedLibrary::load(const std::string& file) {
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    problem_ = dlerror();
    return false;
  }
  problem_.clear();
  link_map* map = nullptr;
  path_ = dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : file;
  return true;
}

LibrarySymbol SharedLibrary::find(const char* name) {
  void* address = handle_ == nullptr ? nullptr : dlsym(handle_, name);
  if (address == nullptr && problem_.empty()) {
    problem_ = path_ + " has no " + name + ": it is older than what this build was made for";
  }
  return LibrarySymbol(address);
}

}  // namespace triptych
