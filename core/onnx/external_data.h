// Data of tensors that lies in files beside the model. A file is opened from the model's folder
// (core/io/beneath.h): beneath it, without links, a regular file with one name. The links of a
// Hugging Face cache are the exception; see hub_cache.h.
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

/// Where the bytes of a tensor lie.
struct ExternalRange {
  std::string location;  ///< relative to the model's folder
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
  std::optional<std::string> checksum;  ///< SHA-1 of the whole file, in hexadecimal digits
};

/// Bytes that are known to be there.
class ExternalBytes {
 public:
  /// Fills `into`, which has their length. Throws IoError naming the file.
  void read(std::span<std::byte> into) const { file_.read(offset_, into); }

 private:
  friend class ExternalFolder;
  ExternalBytes(InputFile file, std::int64_t offset) : file_(std::move(file)), offset_(offset) {}

  InputFile file_;
  std::int64_t offset_ = 0;
};

class ExternalFolder {
 public:
  /// The folder that holds `model`; opened when it is first needed.
  explicit ExternalFolder(std::filesystem::path model);

  /// The `wanted` bytes of `range`, whose length must be that when it is given, and whose file
  /// must have the checksum that is given. Throws IoError naming the file when they are not there.
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
