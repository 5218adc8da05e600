// Types of elements and attributes by ONNX's numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor/dtype.h"

namespace triptych::onnx {

/// Dimensions that a tensor may have.
constexpr int kMaxRank = 32;

/// The kinds of an attribute's value (AttributeProto.AttributeType).
enum AttributeType { kFloat = 1, kInt, kString, kTensor, kGraph, kFloats, kInts, kStrings };

struct ElementType {
  DType dtype = DType::F32;
  bool is_double = false;  ///< float64 in the file, float32 here
  /// Bytes of one element in the file.
  std::size_t file_bytes() const { return is_double ? 8 : dtype_size(dtype); }
};

/// The type of that number (TensorProto.DataType). Nothing for those that Triptych lacks.
std::optional<ElementType> element_type(std::int64_t number);

/// ONNX's number of `dtype`.
std::int32_t element_number(DType dtype);

/// "float64", or "number 99" for one that ONNX does not have.
std::string element_type_name(std::int64_t number);

/// Throws UnsupportedError for a type that Triptych lacks and IoError for no type at all. `of` is
/// its owner.
ElementType require_element_type(std::int64_t number, const std::string& of);

/// Key of a value's metadata in which PyTorch's exporter stores "PARAMETER", "BUFFER" or others.
inline constexpr const char* kKindOfInitializer = "pkg.torch.export.graph_signature.InputSpec.kind";

/// True for an attribute that names an element type ("to", "dtype") and names float64.
bool names_double(const std::string& attribute, std::int64_t value);

}  // namespace triptych::onnx
