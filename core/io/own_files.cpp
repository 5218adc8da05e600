// SPDX-License-Identifier: Apache-2.0
#include "core/io/own_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <mutex>
#include <optional>
#include <span>
#include <sstream>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/file_descriptor.h"
#include "core/io/input_file.h"
#include "core/io/sha256.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

constexpr const char* kList = ".triptych";
constexpr std::size_t kHashLength = 64;

/// Permission by allow_overwriting(), and the files that were told of.
struct Overwriting {
  std::mutex mutex;
  std::function<void(const fs::path&)> tell;
  std::set<fs::path> told;
};

Overwriting& overwriting() {
  static Overwriting state;
  return state;
}

/// Files and places that no command may replace.
struct Kept {
  std::mutex mutex;
  std::set<std::pair<dev_t, ino_t>> inputs;
  std::function<std::string(const fs::path&)> owner;
};

Kept& kept() {
  static Kept state;
  return state;
}

/// Device and inode of the regular file at `path`, if there is one; those of its target for a link.
std::optional<std::pair<dev_t, ino_t>> identity_of(const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return std::pair(status.st_dev, status.st_ino);
}

bool is_input(const fs::path& path) {
  const auto identity = identity_of(path);
  auto& state = kept();
  const std::lock_guard lock(state.mutex);
  return identity && state.inputs.contains(*identity);
}

void require_free_place(const fs::path& path) {
  auto& state = kept();
  const std::lock_guard lock(state.mutex);
  const auto owner = state.owner ? state.owner(path) : std::string();
  if (owner.empty()) return;
  throw InvalidArgument(
      fmt::format("\"{}\" is a file of {}, which needs it: nothing else may be written there, nor "
                  "overwrite it; give the option out another place",
                  path.string(), owner));
}

/// A file or a link, not a folder, a device such as /dev/null, or a pipe.
bool replaceable(const fs::path& path) {
  std::error_code ignored;
  const auto status = fs::symlink_status(path, ignored);
  return fs::is_regular_file(status) || fs::is_symlink(status);
}

/// May the file at `path` go? Tells of it if so.
bool may_replace(const fs::path& path) {
  auto& state = overwriting();
  const std::lock_guard lock(state.mutex);
  if (!state.tell || !replaceable(path)) return false;
  if (state.told.insert(path).second) state.tell(path);
  return true;
}

std::string sha256_of_text(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

constexpr std::int64_t kMaxHashedBytes = std::int64_t{1} << 42;

bool occupied(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

}  // namespace

void allow_overwriting(std::function<void(const fs::path&)> tell) {
  auto& state = overwriting();
  const std::lock_guard lock(state.mutex);
  state.tell = std::move(tell);
  state.told.clear();
}

void keep_input(const fs::path& path) {
  const auto identity = identity_of(path);
  if (!identity) return;
  auto& state = kept();
  const std::lock_guard lock(state.mutex);
  state.inputs.insert(*identity);
}

void forget_inputs() {
  auto& state = kept();
  const std::lock_guard lock(state.mutex);
  state.inputs.clear();
}

void keep_places(std::function<std::string(const fs::path&)> owner) {
  auto& state = kept();
  const std::lock_guard lock(state.mutex);
  state.owner = std::move(owner);
}

OwnFiles::OwnFiles(fs::path folder, Elsewhere elsewhere)
    : folder_(std::move(folder)), elsewhere_(elsewhere) {
  listed_ = occupied(folder_ / kList);
  if (!listed_) return;
  std::istringstream lines(read_file(folder_ / kList));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() <= kHashLength + 2) continue;  // a crash cut it
    lines_.emplace(line.substr(kHashLength + 2), line.substr(0, kHashLength));
  }
}

bool OwnFiles::lists(const fs::path& name) const {
  const auto line = lines_.lower_bound({name.generic_string(), ""});
  return line != lines_.end() && line->first == name.generic_string();
}

bool OwnFiles::unchanged(const fs::path& name) const {
  const auto path = folder_ / name;
  std::error_code ignored;
  return lists(name) && fs::is_regular_file(fs::symlink_status(path, ignored)) &&
         lines_.contains({name.generic_string(), sha256_of(InputFile(path, kMaxHashedBytes))});
}

void OwnFiles::require(const fs::path& name) const {
  const auto path = folder_ / name;
  if (!occupied(path)) return;
  if (is_input(path)) {
    throw InvalidArgument(fmt::format(
        "this would overwrite \"{}\", which the command reads, and no command overwrites "
        "its own input; give the option out another place",
        path.string()));
  }
  if (unchanged(name) || may_replace(path)) return;
  std::error_code ignored;
  if (!replaceable(path) && !fs::is_directory(path, ignored)) {
    throw InvalidArgument(fmt::format(
        "\"{}\" is a device, a pipe or a socket, which no file replaces; give the option out "
        "another place",
        path.string()));
  }
  throw InvalidArgument(
      fmt::format("this would overwrite \"{}\", {}; {}move it away, or give the option overwrite",
                  path.string(),
                  lists(name) ? "which was changed since this program wrote it"
                              : "which this program did not write",
                  elsewhere_ == Elsewhere::Possible ? "give the option out another place, " : ""));
}

void OwnFiles::require_all_of(const fs::path& name,
                              const std::function<bool(const std::string&)>& excepted) const {
  std::error_code error, ignored;
  for (const auto& file : names_in(folder_ / name, error)) {
    const auto path = folder_ / name / file;
    if (fs::is_directory(fs::symlink_status(path, ignored))) {
      require_all_of(name / file, excepted);
    } else if (!file.starts_with('.') && !excepted(file) && !fs::is_directory(path, ignored)) {
      require(name / file);
    }
  }
  if (error && occupied(folder_ / name)) {
    throw IoError(
        fmt::format("cannot list \"{}\": {}", (folder_ / name).string(), error.message()));
  }
}

void OwnFiles::remove_own_of(const fs::path& name) {
  std::error_code ignored;
  for (const auto& line : lines_) {
    const fs::path file = line.first;
    const auto within = file.lexically_relative(name);
    if (within.empty() || *within.begin() == "..") continue;
    if (unchanged(file) && !is_input(folder_ / file)) fs::remove(folder_ / file, ignored);
  }
}

void OwnFiles::remove(const fs::path& name) {
  require(name);
  std::error_code error;
  fs::remove(folder_ / name, error);
  if (error) {
    throw IoError(
        fmt::format("cannot remove \"{}\": {}", (folder_ / name).string(), error.message()));
  }
}

void OwnFiles::list(const std::string& hash, const std::string& name) {
  const bool written = !name.empty() && !lines_.emplace(name, hash).second;
  if (written) return;
  if (!folder_.empty()) make_folder(folder_);
  const auto path = folder_ / kList;
  const internal::FileDescriptor file(internal::retry_interrupted([&] {
    return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  }));
  if (file.get() < 0) internal::throw_errno("write", path);
  listed_ = true;
  if (name.empty()) return;
  const auto line = fmt::format("{}  {}\n", hash, name);
  const auto count =
      internal::retry_interrupted([&] { return ::write(file.get(), line.data(), line.size()); });
  if (count != std::ssize(line)) internal::throw_errno("write", path);
}

void OwnFiles::adopt(const fs::path& name) {
  const auto path = folder_ / name;
  const bool file = !name.empty() && fs::is_regular_file(fs::symlink_status(path));
  if (file) return list(sha256_of(InputFile(path, kMaxHashedBytes)), name.generic_string());
  list("", "");
}

void OwnFiles::write(const fs::path& name, std::string_view content) {
  require(name);
  const auto path = folder_ / name;
  if (path.has_parent_path()) make_folder(path.parent_path());
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  list(sha256_of_text(content), name.generic_string());
  file.commit();
}

OwnFiles::Draft OwnFiles::begin(const fs::path& name) const {
  require(name);
  const auto path = folder_ / name;
  if (path.has_parent_path()) make_folder(path.parent_path());
  return std::make_unique<AtomicFile>(path);
}

void OwnFiles::finish(const fs::path& name, AtomicFile& file, std::int64_t size) {
  Sha256 hash;
  std::vector<std::byte> part(std::size_t{1} << 20);
  for (std::int64_t at = 0; at < size; at += std::ssize(part)) {
    part.resize(static_cast<std::size_t>(std::min(std::ssize(part), size - at)));
    file.read_at(at, part);
    hash.update(part);
  }
  list(hash.finish(), name.generic_string());
  file.commit();
}

void require_own_file(const fs::path& path) {
  require_free_place(path);
  OwnFiles(path.parent_path()).require(path.filename());
}

void write_own_file(const fs::path& path, std::string_view content) {
  require_free_place(path);
  OwnFiles(path.parent_path()).write(path.filename(), content);
}

}  // namespace triptych
