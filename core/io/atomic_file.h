// Files that are replaced as a whole: after a crash, a full disk or a kill the path holds the old
// content or the new one, never a part. Bytes go to a temporary file in the same folder. Commit
// does fsync, rename and fsync of the folder, in this order. The writer holds a lock (flock) on its
// temporary file, so that another process knows one that a killed writer left.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/io/file_descriptor.h"

namespace triptych {

/// Ends the name of every temporary file: ".NAME.PROCESS.NUMBER.triptych.tmp".
inline constexpr std::string_view kTemporarySuffix = ".triptych.tmp";

class AtomicFile {
 public:
  /// Throws IoError when the temporary file cannot be made.
  explicit AtomicFile(std::filesystem::path target);
  /// The file `name` of an open folder. `shown` is its path in messages.
  AtomicFile(internal::FileDescriptor folder, std::string name, std::filesystem::path shown);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless committed.
  ~AtomicFile();

  /// Appends. Throws IoError with the system's reason (disk full, ...). Never gets far ahead of the
  /// disk, so that no call takes long, commit included.
  void write(std::span<const std::byte> bytes);
  /// Writes at `offset`, independently of write(), which appends. Throws IoError.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  /// Reads back written data. Throws IoError when there is less.
  void read_at(std::int64_t offset, std::span<std::byte> into) const;
  /// Makes the content durable under the target's name. Throws IoError.
  void commit();

 private:
  void open_temporary();
  void open_new_temporary(std::atomic<unsigned>& counter);
  void follow(std::size_t written);

  std::filesystem::path target_;  ///< in messages
  internal::FileDescriptor folder_;
  std::string name_;
  std::string temporary_;             ///< in the folder. Empty once it has the target's name
  std::filesystem::path remembered_;  ///< its path, for the end of the process
  std::size_t behind_ = 0;            ///< bytes that are not on their way to the disk
  internal::FileDescriptor descriptor_;
};

/// Removes the temporary files of killed writers in `folder`, not below it: regular files of this
/// user with such a name that no process holds. One stays when `may_go` is false of it.
void remove_temporaries(const std::filesystem::path& folder,
                        const std::function<bool(const std::filesystem::path&)>& may_go = {});
/// The same in `folder` and in the folders below it, links excepted.
void remove_temporaries_below(const std::filesystem::path& folder);

/// Replaces `path` by `content`. Throws IoError and leaves the old file when that fails.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace triptych
