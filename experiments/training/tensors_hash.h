// Fingerprint of named tensors: which weights a run has, in one line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/io/sha256.h"
#include "core/tensor/tensor.h"

namespace triptych::training {

/// SHA-256 over tensors in the order of their addition: for each its name, then its values.
class TensorsHash {
 public:
  void add(std::string_view name, const Tensor& tensor) {
    hash_.update(std::as_bytes(std::span(name)));
    hash_.update(tensor.bytes());
  }
  /// The digest of all data so far. Call once.
  std::string finish() { return hash_.finish(); }

 private:
  Sha256 hash_;
};

}  // namespace triptych::training
