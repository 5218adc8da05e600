// Data of tensors that lies in files beside the model. A file is opened from the model's folder
// (core/io/beneath.h): beneath it, without links, a regular file with one name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/io/file_descriptor.h"

namespace triptych::onnx {

/// Where the bytes of a tensor lie.
struct ExternalRange {
  std::string location;  ///< relative to the model's folder
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
};

/// Bytes that are known to be there.
class ExternalBytes {
 public:
  /// Fills `into`, which has their length. Throws IoError naming the file.
  void read(std::span<std::byte> into) const;

 private:
  friend class ExternalFolder;
  internal::FileDescriptor file_;
  std::string location_;
  std::int64_t offset_ = 0;
};

class ExternalFolder {
 public:
  /// The folder that holds `model`; opened when it is first needed.
  explicit ExternalFolder(const std::filesystem::path& model);

  /// The `wanted` bytes of `range`, whose length must be that when it is given. Throws IoError
  /// naming the file when they are not there.
  ExternalBytes find(const ExternalRange& range, std::int64_t wanted);

 private:
  internal::FileDescriptor open(const std::string& location);

  std::filesystem::path folder_;
  internal::FileDescriptor descriptor_;
};

}  // namespace triptych::onnx
