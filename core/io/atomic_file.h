// Files that are replaced as a whole: after a crash, a full disk or a kill the path holds the old
// content or the new one, never a part. Bytes go to a temporary file in the same folder; commit
// does fsync, rename and fsync of the folder, in this order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/io/file_descriptor.h"

namespace triptych {

/// Ends the name of every temporary file; it starts with "." and the name of the target.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

class AtomicFile {
 public:
  /// Throws IoError when the temporary file cannot be made.
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless committed.
  ~AtomicFile();

  /// Appends; throws IoError with the system's reason (disk full, ...). Never gets far ahead of the
  /// disk, so that no call takes long, commit included.
  void write(std::span<const std::byte> bytes);
  /// Writes at `offset`, beside what write() appends; throws IoError.
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  /// Reads back what was written; throws IoError when there is less.
  void read_at(std::int64_t offset, std::span<std::byte> into) const;
  /// Makes the content durable under the target's name; throws IoError.
  void commit();

 private:
  void open_temporary();
  void follow(std::size_t written);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::size_t behind_ = 0;  ///< bytes that are not on their way to the disk
  internal::FileDescriptor descriptor_;
};

/// Removes what killed writers of the files `names` in `folder` have left. Nobody may write them
/// now.
void remove_temporaries(const std::filesystem::path& folder, const std::set<std::string>& names);

/// Replaces `path` by `content`; throws IoError and leaves the old file when that fails.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace triptych
