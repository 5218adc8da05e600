// SHA-256 digests (FIPS 180-4) as 64 lower-case hexadecimal digits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/io/input_file.h"

namespace triptych {

/// A digest over bytes that arrive in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  /// The digest of all data so far. Call once.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of a whole file. Throws IoError when reading fails.
std::string sha256_of(const InputFile& file);

}  // namespace triptych
