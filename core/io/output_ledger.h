// Files that are replaced only where this program wrote them and nobody has changed them since.
// The list of these files is FOLDER/.triptych (own_list.h). A line is written before its file, so
// that a kill between the two leaves a file that is known. Names of the list are not trusted:
// nothing outside the folder, behind a link or with a second name is replaced or deleted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/io/atomic_file.h"
#include "core/io/own_list.h"

namespace triptych {

/// From now on and everywhere in this process a file that this program did not write, or that was
/// changed since, is replaced like its own, because its user said so. `tell` hears of each once,
/// when it is first met. Only an empty `tell` takes that back. Folders, devices and pipes
/// are never replaced.
void allow_overwriting(std::function<void(const std::filesystem::path&)> tell);

/// Whether that was called.
bool overwriting_allowed();

/// From now on nothing in this process replaces the file at `path` under any of its names (by
/// device and inode), regardless of allow_overwriting(): the command reads it. Nothing happens when
/// no regular file is there.
void keep_input(const std::filesystem::path& path);
/// Takes back all of these, before such files go and others get their inodes.
void forget_inputs();

/// From now on and everywhere in this process no file where a user says (require_own_file) takes a
/// place for which `owner` returns a text. The text names the owner: "the run in \"RUN\"". An
/// empty `owner` takes that back.
void keep_places(std::function<std::string(const std::filesystem::path&)> owner);

/// Whether the user can choose another folder for the files, which require() then suggests.
enum class Elsewhere : std::uint8_t { Possible, Impossible };

class OutputLedger {
 public:
  /// Files that `folder`, which need not exist, lists now. Throws IoError when its list cannot be
  /// read, and InvalidArgument when it is a link or was not written by this program.
  explicit OutputLedger(std::filesystem::path folder, Elsewhere elsewhere = Elsewhere::Possible);

  /// True when this program wrote a file of that name here, whatever it holds now.
  bool lists(const std::filesystem::path& name) const;
  /// Throws InvalidArgument unless `name`, a path within the folder, is free, or this program wrote
  /// its file, or allow_overwriting() was called. Always throws for a file of keep_input().
  void require(const std::filesystem::path& name) const;
  /// require() for everything within the folder `name` that is not hidden, except files with names
  /// that `excepted` accepts.
  void require_all_of(const std::filesystem::path& name,
                      const std::function<bool(const std::string&)>& excepted) const;
  /// Removes the files that this program wrote to the folder `name` and nobody has changed, but no
  /// input. Also removes the temporary files of killed writers.
  void remove_own_of(const std::filesystem::path& name);
  /// Removes the file `name`. Throws as require() does, and IoError when that fails.
  void remove(const std::filesystem::path& name);
  /// Replaces `name` by `content`, and makes the folders above it. Throws as require() does, and
  /// IoError when writing fails.
  void write(const std::filesystem::path& name, std::string_view content);
  /// The same in two parts, for a file that is written in pieces: its caller fills the file of
  /// begin(), `size` bytes in the end.
  using Draft = std::unique_ptr<AtomicFile>;
  Draft begin(const std::filesystem::path& name) const;
  void finish(const std::filesystem::path& name, AtomicFile& file, std::int64_t size);

  /// The same for content of the SHA-256 `hash`.
  void finish(const std::filesystem::path& name, AtomicFile& file, const std::string& hash);

  /// Whether the content of this hash was ever written to `name`.
  bool holds(const std::filesystem::path& name, const std::string& hash) const;
  /// True when this program wrote a file to the folder `name` or below. "" is this folder.
  bool lists_any_in(const std::filesystem::path& name) const;
  /// Runs that trained on these files, by absolute paths that may be gone.
  const std::set<std::string>& runs() const { return list_.runs; }
  /// Adds one of them to the list. Throws IoError when that cannot be written.
  void note_run(const std::filesystem::path& run);

 private:
  /// The folder, or -1 when it does not exist.
  internal::FileDescriptor open_if_there() const;
  internal::FileDescriptor open_made() const;
  void refresh() const;
  std::optional<struct stat> status(const std::filesystem::path& name) const;
  bool unchanged(const std::filesystem::path& name) const;
  bool is_own(const std::filesystem::path& name) const;
  void remove_leavings(int folder, const std::filesystem::path& name) const;
  /// Lists `name`, after a last require() when the file replaces another one.
  void list(const std::string& hash, const std::filesystem::path& name);

  std::filesystem::path folder_;
  Elsewhere elsewhere_;
  mutable internal::OwnList list_;                   ///< as last read
  mutable std::set<std::filesystem::path> cleaned_;  ///< folders, by remove_leavings()
};

/// OutputLedger::require and write for a file of the folder that it lies in, where a user says.
/// Throws InvalidArgument for a place of keep_places(), too.
void require_own_file(const std::filesystem::path& path);
void write_own_file(const std::filesystem::path& path, std::string_view content);
/// The same for content that `fill` writes. It returns the SHA-256.
void write_own_file(const std::filesystem::path& path,
                    const std::function<std::string(AtomicFile&)>& fill);

}  // namespace triptych
