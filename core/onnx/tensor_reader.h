// Tensors of ONNX files, inside and beside them.
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
  /// `memory`: bytes of all tensors together.
  TensorReader(const std::filesystem::path& model, std::int64_t memory)
      : folder_(model, memory), limit_(memory), left_(memory) {}

  /// `stored`, whose data must be exactly as long as its shape and type say. float64 becomes
  /// float32. `of` names it in messages. Throws IoError, or UnsupportedError for its type.
  TensorPtr read(const onnx_format::Tensor& stored, const std::string& of);

  /// A tensor was float64.
  bool has_doubles() const { return has_doubles_; }

 private:
  void take(std::int64_t bytes, const std::string& of);
  void fill(const onnx_format::Tensor& stored, std::span<std::byte> into, const std::string& of);

  ExternalFolder folder_;
  std::int64_t limit_;
  std::int64_t left_;
  bool has_doubles_ = false;
};

}  // namespace triptych::onnx
