// Reading of regular files with bounds: a pipe, a device or a folder is refused, nothing is read
// beyond the size found when the file was opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>

#include "core/base/memory_budget.h"
#include "core/io/file_descriptor.h"

namespace triptych {

/// No bound on a file's size: the memory budget bounds the bytes that are read.
inline constexpr std::int64_t kAnySize = std::numeric_limits<std::int64_t>::max();

class InputFile {
 public:
  /// Throws IoError when `path` cannot be opened, is not a regular file or exceeds `max_bytes`.
  explicit InputFile(std::filesystem::path path, std::int64_t max_bytes = kAnySize);
  /// The same of a file that is open already. `path` names it in messages.
  InputFile(internal::FileDescriptor opened, std::filesystem::path path,
            std::int64_t max_bytes = kAnySize);

  std::int64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  /// Fills `into` from `offset`. Throws IoError when the file ends before.
  void read(std::int64_t offset, std::span<std::byte> into) const;
  /// Throws MemoryLimitError when that is more than the memory budget has left.
  std::string read_text(std::int64_t offset, std::int64_t count) const;
  /// Throws IoError: `"<path>": <problem>`.
  [[noreturn]] void refuse(const std::string& problem) const;
  /// Throws MemoryLimitError likewise: the file is sound, and no reader may take it for damaged.
  [[noreturn]] void refuse_memory(const std::string& problem) const;
  /// parse(), with this file's name put before the message of an error that it throws.
  template <class Parse>
  auto named(const Parse& parse) const;

 private:
  std::filesystem::path path_;
  internal::FileDescriptor descriptor_;
  std::int64_t size_ = 0;
};

/// The whole file. Throws IoError as InputFile does.
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes = kAnySize);

template <class Parse>
auto InputFile::named(const Parse& parse) const {
  try {
    return parse();
  } catch (const UnsupportedError& error) {
    throw UnsupportedError("\"" + path_.string() + "\": " + error.what());
  } catch (const MemoryLimitError& error) {
    refuse_memory(error.what());
  } catch (const MemoryLimitReached& error) {
    refuse_memory(error.what());
  } catch (const Error& error) {
    refuse(error.what());
  }
}

}  // namespace triptych
