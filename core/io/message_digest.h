// The digests that OpenSSL computes, as lower-case hexadecimal digits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/io/input_file.h"

namespace triptych {

/// A digest over bytes that arrive in parts.
class MessageDigest {
 public:
  /// `algorithm` is OpenSSL's name: "SHA1", "SHA256". Throws Error where OpenSSL lacks it.
  explicit MessageDigest(std::string algorithm);
  ~MessageDigest();
  void update(std::span<const std::byte> bytes);
  /// Adds a whole file, part by part. Throws IoError when reading fails.
  void update(const InputFile& file);
  /// The digest of all data so far. Call once.
  std::string finish();

 private:
  struct State;
  void require(int result) const;

  std::string algorithm_;
  std::unique_ptr<State> state_;
};

}  // namespace triptych
