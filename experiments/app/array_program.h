// Files with programs of the systolic array.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <string>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/io/input_file.h"
#include "systolic/isa/listing.h"

namespace triptych::app {

/// The result of `read` for the text of a file of at most `max_bytes`. Its errors begin with the
/// file's name.
template <class Read>
auto read_program(const std::string& path, Read read,
                  std::int64_t max_bytes = std::int64_t{1} << 28) {
  const InputFile file(path, max_bytes);
  const auto text = file.read_text(0, file.size());
  try {
    return read(without_byte_order_mark(text));
  } catch (const mmu::ListingError& error) {
    throw InvalidArgument(fmt::format("{}, {}", path, error.what()));
  }
}

}  // namespace triptych::app
