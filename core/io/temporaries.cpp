// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporaries.h"

#include <unistd.h>

#include <map>
#include <mutex>

#include "core/io/folder_tree.h"

namespace triptych {

namespace fs = std::filesystem;

namespace {

struct Remembered {
  std::mutex mutex;
  std::map<fs::path, pid_t> paths;  ///< with the process: a forked child owns none of its parent's
};

/// The path from the root on, whatever folder the process changes to.
fs::path from_root(const fs::path& path) {
  std::error_code error;
  auto absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

/// Lives until the process ends: static objects may have temporaries.
Remembered& remembered() {
  static auto* const all = new Remembered;
  return *all;
}

}  // namespace

fs::path make_temporary(const std::function<fs::path()>& make) {
  const std::lock_guard lock(remembered().mutex);
  auto path = make();
  remembered().paths[from_root(path)] = ::getpid();
  return path;
}

void remember_temporary(const fs::path& path) {
  make_temporary([&] { return path; });
}

void forget_temporary(const fs::path& path) {
  const std::lock_guard lock(remembered().mutex);
  remembered().paths.erase(from_root(path));
}

void remove_temporaries_of_process() {
  remembered().mutex.lock();  // for ever
  for (const auto& [path, process] : remembered().paths)
    if (process == ::getpid() && ::unlink(path.c_str()) != 0) remove_tree(path);
}

}  // namespace triptych
