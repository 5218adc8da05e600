// SPDX-License-Identifier: Apache-2.0
#include "core/io/output_ledger.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <mutex>
#include <span>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/atomic_file.h"
#include "core/io/beneath.h"
#include "core/io/file_descriptor.h"
#include "core/io/input_file.h"
#include "core/io/sha256.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

/// The permission of allow_overwriting(), and the files that were reported.
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

/// Device and inode of the regular file at `path`, if there is one. For a link, those of its
/// target.
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

/// The name as the list has it.
std::string listed_name(const fs::path& name) { return name.lexically_normal().generic_string(); }

[[noreturn]] void refuse_name(const fs::path& path, const std::string& problem) {
  throw InvalidArgument(fmt::format(
      "\"{}\" {}, and nothing is written or deleted there; give the option out another place",
      path.string(), problem));
}

/// For a system call beneath the folder that failed for `path`.
[[noreturn]] void throw_beneath(const std::string& action, const fs::path& path) {
  if (errno == EXDEV) refuse_name(path, "leads out of its folder");
  if (errno == ELOOP) refuse_name(path, "lies behind a symbolic link");
  internal::throw_errno(action, path);
}

}  // namespace

void allow_overwriting(std::function<void(const fs::path&)> tell) {
  auto& state = overwriting();
  const std::lock_guard lock(state.mutex);
  state.tell = std::move(tell);
  state.told.clear();
}

bool overwriting_allowed() {
  auto& state = overwriting();
  const std::lock_guard lock(state.mutex);
  return static_cast<bool>(state.tell);
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

OutputLedger::OutputLedger(fs::path folder, Elsewhere elsewhere)
    : folder_(std::move(folder)), elsewhere_(elsewhere) {
  refresh();
}

void OutputLedger::refresh() const {
  const auto folder = open_if_there();
  if (folder.get() < 0) return;
  auto list = internal::read_own_list(folder.get(), folder_);
  if (list) list_ = std::move(*list);
}

internal::FileDescriptor OutputLedger::open_if_there() const {
  auto folder = internal::open_folder(folder_);
  if (folder.get() < 0 && errno != ENOENT && errno != ENOTDIR)
    internal::throw_errno("open", folder_);
  return folder;
}

internal::FileDescriptor OutputLedger::open_made() const {
  if (!folder_.empty()) make_folder(folder_);
  auto folder = internal::open_folder(folder_);
  if (folder.get() < 0) internal::throw_errno("open", folder_);
  return folder;
}

bool OutputLedger::lists(const fs::path& name) const {
  const auto line = list_.files.lower_bound({listed_name(name), ""});
  return line != list_.files.end() && line->first == listed_name(name);
}

bool OutputLedger::lists_any_in(const fs::path& name) const {
  if (name.empty()) return !list_.files.empty();
  const auto below = listed_name(name) + "/";
  const auto line = list_.files.lower_bound({below, ""});
  return line != list_.files.end() && line->first.starts_with(below);
}

std::optional<struct stat> OutputLedger::status(const fs::path& name) const {
  if (!internal::stays_beneath(name)) refuse_name(folder_ / name, "leads out of its folder");
  const auto folder = open_if_there();
  if (folder.get() < 0) return std::nullopt;
  const auto status = internal::status_beneath(folder.get(), name);
  if (!status && errno != ENOENT && errno != ENOTDIR) throw_beneath("examine", folder_ / name);
  return status;
}

bool OutputLedger::unchanged(const fs::path& name) const {
  if (!lists(name)) return false;
  const auto folder = open_if_there();
  if (folder.get() < 0) return false;
  auto file = internal::open_beneath(folder.get(), name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  const bool other = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO;
  if (file.get() < 0 && !other) throw_beneath("open", folder_ / name);
  struct stat status = {};
  const bool plain = file.get() >= 0 && ::fstat(file.get(), &status) == 0 &&
                     S_ISREG(status.st_mode) && status.st_nlink <= 1;  // 0: just replaced
  return plain &&
         holds(name, sha256_of(InputFile(std::move(file), folder_ / name, kMaxHashedBytes)));
}

bool OutputLedger::holds(const fs::path& name, const std::string& hash) const {
  return list_.files.contains({listed_name(name), hash});
}

bool OutputLedger::is_own(const fs::path& name) const {
  if (unchanged(name)) return true;
  refresh();  // another process of this program may have written it since
  return unchanged(name);
}

void OutputLedger::require(const fs::path& name) const {
  const auto path = folder_ / name;
  const auto found = status(name);
  if (!found) return;
  if (is_input(path)) {
    throw InvalidArgument(fmt::format(
        "this would overwrite \"{}\", which the command reads, and no command overwrites "
        "its own input; give the option out another place",
        path.string()));
  }
  if (is_own(name) || may_replace(path)) return;
  const auto is = [&](mode_t kind) { return (found->st_mode & S_IFMT) == kind; };
  if (!is(S_IFREG) && !is(S_IFLNK) && !is(S_IFDIR)) {
    throw InvalidArgument(fmt::format(
        "\"{}\" is a device, a pipe or a socket, which no file replaces; give the option out "
        "another place",
        path.string()));
  }
  const bool linked = is(S_IFREG) && found->st_nlink > 1;
  throw InvalidArgument(
      fmt::format("this would overwrite \"{}\", {}; {}move it away, or give the option overwrite",
                  path.string(),
                  !lists(name) ? "which this program did not write"
                  : linked     ? "which has another name (a hard link)"
                               : "which was changed since this program wrote it",
                  elsewhere_ == Elsewhere::Possible ? "give the option out another place, " : ""));
}

void OutputLedger::require_all_of(const fs::path& name,
                                  const std::function<bool(const std::string&)>& excepted) const {
  if (!name.empty()) {
    const auto found = status(name);
    if (!found) return;
    if (S_ISLNK(found->st_mode)) refuse_name(folder_ / name, "is a symbolic link");
  }
  std::error_code error, ignored;
  for (const auto& file : names_in(folder_ / name, error)) {
    const auto path = folder_ / name / file;
    if (fs::is_directory(fs::symlink_status(path, ignored))) {
      require_all_of(name / file, excepted);
    } else if (!file.starts_with('.') && !excepted(file) && !fs::is_directory(path, ignored)) {
      require(name / file);
    }
  }
  if (error && fs::exists(fs::symlink_status(folder_ / name, ignored))) {
    throw IoError(
        fmt::format("cannot list \"{}\": {}", (folder_ / name).string(), error.message()));
  }
}

void OutputLedger::remove_own_of(const fs::path& name) {
  const auto folder = open_if_there();
  if (folder.get() < 0) return;
  std::set<fs::path> files, folders;
  for (const auto& line : list_.files) {
    const fs::path file = line.first;
    const auto within = file.lexically_relative(name);
    if (within.empty() || *within.begin() == "..") continue;
    folders.insert(file.parent_path());
    files.insert(file);
  }
  for (const auto& file : files)
    if (unchanged(file) && !is_input(folder_ / file)) internal::unlink_beneath(folder.get(), file);
  for (const auto& inner : folders) remove_leavings(folder.get(), inner);
}

void OutputLedger::remove_leavings(int folder, const fs::path& name) const {
  if (!cleaned_.insert(name).second) return;
  const auto open = name.empty() ? internal::FileDescriptor()
                                 : internal::open_beneath(folder, name, O_PATH | O_DIRECTORY);
  if (name.empty() || open.get() >= 0) remove_temporaries(folder_ / name);
}

void OutputLedger::remove(const fs::path& name) {
  require(name);
  const auto folder = internal::open_folder(folder_);
  if (internal::unlink_beneath(folder.get(), name) != 0 && errno != ENOENT)
    throw_beneath("remove", folder_ / name);
}

void OutputLedger::list(const std::string& hash, const fs::path& name) {
  const auto folder = open_made();
  internal::OpenOwnList list(folder.get(), folder_);
  list.read(list_);
  require(name);
  if (list_.files.emplace(listed_name(name), hash).second)
    list.append(list_, internal::own_line(hash, listed_name(name)));
}

void OutputLedger::write(const fs::path& name, std::string_view content) {
  const auto file = begin(name);
  file->write(std::as_bytes(std::span(content)));
  finish(name, *file, sha256_of_text(content));
}

OutputLedger::Draft OutputLedger::begin(const fs::path& name) const {
  require(name);
  const auto path = folder_ / name;
  const auto folder = open_made();
  auto parent = internal::make_folder_beneath(folder.get(), name.parent_path());
  if (parent.get() < 0) throw_beneath("make", path.parent_path());
  remove_leavings(folder.get(), name.parent_path());
  return std::make_unique<AtomicFile>(std::move(parent), name.filename().string(), path);
}

void OutputLedger::finish(const fs::path& name, AtomicFile& file, std::int64_t size) {
  Sha256 hash;
  std::vector<std::byte> part(std::size_t{1} << 20);
  for (std::int64_t at = 0; at < size; at += std::ssize(part)) {
    part.resize(static_cast<std::size_t>(std::min(std::ssize(part), size - at)));
    file.read_at(at, part);
    hash.update(part);
  }
  finish(name, file, hash.finish());
}

void OutputLedger::finish(const fs::path& name, AtomicFile& file, const std::string& hash) {
  list(hash, name);
  file.commit();
}

void OutputLedger::note_run(const fs::path& run) {
  const auto folder = open_made();
  internal::OpenOwnList list(folder.get(), folder_);
  list.read(list_);
  if (list_.runs.insert(run.string()).second) list.append(list_, internal::run_line(run.string()));
}

void require_own_file(const fs::path& path) {
  const auto name = path.filename();
  if (name.empty() || name == "." || name == "..")
    throw InvalidArgument(fmt::format("\"{}\" is a folder; give a file in it", path.string()));
  require_free_place(path);
  OutputLedger(path.parent_path()).require(path.filename());
}

void write_own_file(const fs::path& path, std::string_view content) {
  require_free_place(path);
  OutputLedger(path.parent_path()).write(path.filename(), content);
}

void write_own_file(const fs::path& path, const std::function<std::string(AtomicFile&)>& fill) {
  require_free_place(path);
  OutputLedger own(path.parent_path());
  const auto file = own.begin(path.filename());
  own.finish(path.filename(), *file, fill(*file));
}

}  // namespace triptych
