// Tensors of ONNX files, inside the file or external.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/onnx/external_data.h"
#include "core/onnx/model.h"
#include "onnx.pb.h"

namespace triptych::onnx {

/// Reads the tensors of one file.
class TensorReader {
 public:
  explicit TensorReader(const std::filesystem::path& model) : folder_(model) {}

  /// `stored`, with data exactly as long as its shape and type require. float64 becomes float32.
  /// `of` names it in messages. Throws IoError, UnsupportedError for its
  /// type, or MemoryLimitError.
  TensorPtr read(const onnx_format::Tensor& stored, const std::string& of);

  /// A tensor was float64.
  bool has_doubles() const { return has_doubles_; }

 private:
  void fill(const onnx_format::Tensor& stored, std::span<std::byte> into, const std::string& of);

  ExternalFolder folder_;
  bool has_doubles_ = false;
};

}  // namespace triptych::onnx
