// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporaries.h"

#include <stdlib.h>
#include <unistd.h>

#include <list>
#include <string>

#include "core/io/folder_tree.h"

namespace triptych {

namespace fs = std::filesystem;

namespace {

struct Entry {
  std::string path;
  pid_t process;  ///< a forked child owns none of its parent's
};

struct Remembered {
  std::recursive_mutex mutex;
  std::list<Entry> entries;
};

/// Lives until the process ends: static objects may have temporaries.
Remembered& remembered() {
  static auto* const all = new Remembered;
  return *all;
}

/// Remembers before `make` creates, so that nothing is allocated in between.
bool make_entry(const fs::path& path, const std::function<bool(std::string&)>& make) {
  auto& all = remembered();
  const std::lock_guard lock(all.mutex);
  auto& entry = all.entries.emplace_back(Entry{path.native(), ::getpid()});
  const bool made = make(entry.path);
  if (!made) all.entries.pop_back();
  return made;
}

}  // namespace

bool make_temporary(const fs::path& path, const std::function<bool()>& make) {
  return make_entry(path, [&](std::string&) { return make(); });
}

fs::path make_temporary_folder(const fs::path& pattern) {
  fs::path made = pattern;
  const bool done = make_entry(pattern, [&](std::string& path) {
    if (::mkdtemp(path.data()) == nullptr) return false;
    made = path;
    return true;
  });
  return done ? made : fs::path();
}

void remember_temporary(const fs::path& path) {
  make_temporary(path, [] { return true; });
}

void forget_temporary(const fs::path& path) noexcept {
  auto& all = remembered();
  const std::lock_guard lock(all.mutex);
  all.entries.remove_if([&](const Entry& entry) { return entry.path == path.native(); });
}

EndOfProcessWaits::EndOfProcessWaits() : lock_(remembered().mutex) {}

void remove_temporaries_of_process() {
  remembered().mutex.lock();  // for ever
  for (const auto& [path, process] : remembered().entries)
    if (process == ::getpid() && ::unlink(path.c_str()) != 0) remove_tree(path);
}

}  // namespace triptych
