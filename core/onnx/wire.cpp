// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/memory_budget.h"

namespace triptych::onnx {
namespace {

/// Messages of onnx.proto. Leaf: bytes that are not looked into.
enum class Part : std::uint8_t {
  Leaf,
  Model,
  OperatorSet,
  Graph,
  Node,
  Attribute,
  ValueInfo,
  Type,
  TensorType,
  Shape,
  Dimension,
  Tensor,
  Entry,
};

struct Nested {
  Part in;
  std::uint64_t field;
  Part is;
};

/// No message of this list holds itself, which bounds the depth.
constexpr std::array kNested = {
    Nested{Part::Model, 7, Part::Graph},      Nested{Part::Model, 8, Part::OperatorSet},
    Nested{Part::Graph, 1, Part::Node},       Nested{Part::Graph, 5, Part::Tensor},
    Nested{Part::Graph, 11, Part::ValueInfo}, Nested{Part::Graph, 12, Part::ValueInfo},
    Nested{Part::Node, 5, Part::Attribute},   Nested{Part::Attribute, 5, Part::Tensor},
    Nested{Part::ValueInfo, 2, Part::Type},   Nested{Part::Type, 1, Part::TensorType},
    Nested{Part::TensorType, 2, Part::Shape}, Nested{Part::Shape, 1, Part::Dimension},
    Nested{Part::Tensor, 13, Part::Entry}};

Part nested(Part in, std::uint64_t field) {
  const auto* found = std::ranges::find_if(
      kNested, [&](const Nested& one) { return one.in == in && one.field == field; });
  return found == kNested.end() ? Part::Leaf : found->is;
}

/// Numbers of variable length that are stored one after another: a byte may become eight.
bool packs_numbers(Part in, std::uint64_t field) {
  return (in == Part::Tensor && (field == 1 || field == 5 || field == 7 || field == 11)) ||
         (in == Part::Attribute && field == 8);
}

class Wire {
 public:
  explicit Wire(std::int64_t parts) : parts_(parts) {}

  void check(Part in, std::string_view bytes) {
    while (!bytes.empty()) {
      if (--parts_ < 0) throw IoError("not an ONNX model: too many parts");
      const auto key = number(bytes);
      const auto field = key >> 3;
      switch (key & 7) {
        case 0:
          number(bytes);
          break;
        case 1:
          take(bytes, 8);
          break;
        case 2:
          look_into(in, field, take(bytes, number(bytes)));
          break;
        case 5:
          take(bytes, 4);
          break;
        default:
          broken();
      }
      if (field == 0) broken();
    }
  }

 private:
  [[noreturn]] static void broken() {
    throw IoError("not an ONNX model: its bytes are no protobuf message");
  }

  static std::uint64_t number(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    broken();
  }

  static std::string_view take(std::string_view& bytes, std::uint64_t count) {
    if (count > bytes.size()) broken();
    const auto taken = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return taken;
  }

  void look_into(Part in, std::uint64_t field, std::string_view bytes) {
    if (packs_numbers(in, field)) {
      unpacked_ += bytes.size() * 8;
      memory_budget().require(unpacked_, "the list of its numbers");
    }
    if (const auto part = nested(in, field); part != Part::Leaf) check(part, bytes);
  }

  std::int64_t parts_;
  std::size_t unpacked_ = 0;  ///< bytes
};

}  // namespace

void check_wire(std::string_view file, std::int64_t parts) { Wire(parts).check(Part::Model, file); }

}  // namespace triptych::onnx
