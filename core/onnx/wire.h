// Checks a file's bytes before protobuf parses them. It counts parts, because a part of two bytes
// takes a hundred when it is parsed, and checks that lengths fit into the enclosing message.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace triptych::onnx {

/// Throws IoError when `file` is not made of protobuf's fields, has groups, which ONNX has not, or
/// more than `parts` fields. Throws MemoryLimitError when its unpacked numbers exceed the budget.
void check_wire(std::string_view file, std::int64_t parts);

}  // namespace triptych::onnx
