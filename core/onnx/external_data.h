// Tensor data in files outside of the model. Each must be a regular file with one name in the
// model's folder or below, and no link leads to it (core/io/beneath.h). The links of a Hugging Face
// cache are the exception.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/io/input_file.h"

namespace triptych::onnx {

/// The place of a tensor's bytes.
struct ExternalRange {
  std::string location;  ///< relative to the model's folder
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
  std::optional<std::string> checksum;  ///< SHA-1 of the whole file, in hexadecimal digits
};

/// Bytes of a file that has them.
class ExternalBytes {
 public:
  /// Fills `into`, which has the same length. Throws IoError naming the file.
  void read(std::span<std::byte> into) const { file_.read(offset_, into); }

 private:
  friend class ExternalFolder;
  ExternalBytes(InputFile file, std::int64_t offset) : file_(std::move(file)), offset_(offset) {}

  InputFile file_;
  std::int64_t offset_ = 0;
};

class ExternalFolder {
 public:
  /// The folder of `model`, which the first read() opens.
  explicit ExternalFolder(std::filesystem::path model);

  /// The `wanted` bytes of `range`. Throws IoError with the file's name when the file lacks them,
  /// when `range` has another length, or when the checksum of `range` is not that of the file.
  ExternalBytes find(const ExternalRange& range, std::int64_t wanted);

 private:
  using FileId = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode

  internal::FileDescriptor open(const std::string& location);
  [[noreturn]] void throw_not_opened(const std::string& location) const;
  void verify(const InputFile& file, FileId id, const ExternalRange& range);

  std::filesystem::path model_;
  std::filesystem::path folder_;
  internal::FileDescriptor descriptor_;
  std::map<FileId, std::string> digests_;
};

}  // namespace triptych::onnx
