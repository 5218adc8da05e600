// SPDX-License-Identifier: Apache-2.0
#include "core/io/folder_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/file_descriptor.h"

namespace triptych {
namespace {

using internal::FileDescriptor;
using internal::retry_interrupted;

constexpr int kDirectory = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

FileDescriptor open_in(int folder, const char* name, int flags) {
  return FileDescriptor(retry_interrupted([&] { return ::openat(folder, name, flags); }));
}

/// The directory `name` of `folder`. Its owner may have closed it to hide its content.
FileDescriptor open_directory(int folder, const char* name) {
  auto opened = open_in(folder, name, O_RDONLY | kDirectory);
  if (opened.get() >= 0 || errno != EACCES) return opened;
  const auto place = open_in(folder, name, O_PATH | kDirectory);
  if (place.get() < 0) return opened;
  // The path through /proc names this very directory, even if another one has its name now.
  ::chmod(fmt::format("/proc/self/fd/{}", place.get()).c_str(), S_IRWXU);
  return open_in(folder, name, O_RDONLY | kDirectory);
}

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
using Stream = std::unique_ptr<DIR, CloseDirectory>;

/// The entries of an open directory, from the first one on. Null when they cannot be read.
Stream entries_of(const FileDescriptor& folder) {
  const int copy = ::openat(folder.get(), ".", O_RDONLY | kDirectory);
  Stream stream(copy < 0 ? nullptr : ::fdopendir(copy));
  if (!stream && copy >= 0) ::close(copy);
  return stream;
}

/// The next name except "." and "..", or null at the end.
const char* next_name(const Stream& stream) {
  while (const auto* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry->d_name;
  }
  return nullptr;
}

/// A directory on the way from the root of a tree down to the current one.
struct Level {
  std::pair<dev_t, ino_t> id;
  std::string name;                  ///< in the level above
  std::vector<std::string> pending;  ///< directories that are still to be visited
};

std::pair<dev_t, ino_t> id_of(const FileDescriptor& folder) {
  struct stat status = {};
  ::fstat(folder.get(), &status);
  return {status.st_dev, status.st_ino};
}

/// A position in a tree: one descriptor, however deep it is.
class Walk {
 public:
  explicit Walk(const std::filesystem::path& root)
      : current_(open_directory(AT_FDCWD, root.c_str())) {
    levels_.push_back({id_of(current_), {}, {}});
  }

  const FileDescriptor& current() const { return current_; }
  Level& level() { return levels_.back(); }
  bool at_root() const { return levels_.size() == 1; }

  bool enter(const std::string& name) {
    auto below = open_directory(current_.get(), name.c_str());
    if (below.get() < 0) return false;
    current_ = std::move(below);
    levels_.push_back({id_of(current_), name, {}});
    return true;
  }
  /// False when the directory above has changed, because somebody moved the current one.
  bool leave() {
    levels_.pop_back();
    current_ = open_directory(current_.get(), "..");
    return current_.get() >= 0 && id_of(current_) == levels_.back().id;
  }

 private:
  FileDescriptor current_;
  std::vector<Level> levels_;
};

/// Visits the entries of the current directory and notes its directories.
bool visit_entries(Walk& walk, const std::function<void(const TreeEntry&)>& visit) {
  const auto stream = entries_of(walk.current());
  if (!stream) return false;
  while (const char* name = next_name(stream)) {
    struct stat status = {};
    if (::fstatat(walk.current().get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    visit({walk.current().get(), name, status});
    if (S_ISDIR(status.st_mode)) walk.level().pending.emplace_back(name);
  }
  return true;
}

/// Removes the files of the current directory. Returns the first directory in it, or nothing.
std::string remove_files(const Walk& walk) {
  ::fchmod(walk.current().get(), S_IRWXU);
  const auto stream = entries_of(walk.current());
  if (!stream) return {};
  while (const char* name = next_name(stream)) {
    if (::unlinkat(walk.current().get(), name, 0) == 0 || errno == ENOENT) continue;
    struct stat status = {};
    const bool known = ::fstatat(walk.current().get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (known && S_ISDIR(status.st_mode)) return name;
  }
  return {};
}

void remove_below(Walk& walk) {
  while (true) {
    const auto name = remove_files(walk);
    if (!name.empty()) {
      if (!walk.enter(name)) return;
      continue;
    }
    if (walk.at_root()) return;
    const auto done = walk.level().name;
    if (!walk.leave() || ::unlinkat(walk.current().get(), done.c_str(), AT_REMOVEDIR) != 0) return;
  }
}

}  // namespace

bool visit_tree(const std::filesystem::path& folder,
                const std::function<void(const TreeEntry&)>& visit) {
  Walk walk(folder);
  if (walk.current().get() < 0) internal::throw_errno("open", folder);
  bool complete = visit_entries(walk, visit);
  while (true) {
    auto& pending = walk.level().pending;
    if (!pending.empty()) {
      const auto name = std::move(pending.back());
      pending.pop_back();
      if (walk.enter(name))
        complete = visit_entries(walk, visit) && complete;
      else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        complete = false;
    } else if (walk.at_root() || !walk.leave()) {
      return complete;  // a directory that moved is seen by the next walk at its new place
    }
  }
}

void remove_tree(const std::filesystem::path& folder) noexcept {
  try {
    Walk walk(folder);
    if (walk.current().get() >= 0) remove_below(walk);
    ::rmdir(folder.c_str());
  } catch (...) {  // no memory for one more level: the rest stays
    return;
  }
}

}  // namespace triptych
