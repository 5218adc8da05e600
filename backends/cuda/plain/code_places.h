// The places in a user's source behind the instructions of an opened library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/emulation/language.h"
#include "backends/cuda/plain/object_file.h"

namespace triptych::cuda::plain {

class CodePlaces {
 public:
  CodePlaces() = default;
  /// `base`: where the library is in memory. It must have a table of lines.
  CodePlaces(const ObjectFile& file, std::uintptr_t base);

  /// The place in a user's source of the call that returns to `pc`. For one in a header, the call
  /// before it, where the header's function was inlined. Line 0: of another library.
  emulation::Location place(const void* pc) const;
  /// True when the call that returns to `pc` is in a user's source.
  bool is_own(const void* pc) const;
  /// Row of the line table for that call, with the file's name. nullptr: none.
  const LineRow* row(const void* pc) const;
  /// Files and lines of the user's source that have code.
  std::set<std::pair<std::string, unsigned>> own_lines() const;
  const std::string& file_of(const LineRow& row) const { return lines_.files[row.file]; }

 private:
  LineTable lines_;
  std::uintptr_t code_ = 0;  ///< where it begins
  /// By byte of the code, rows of lines_ and 1: its own, and the last one of a user's source.
  std::vector<std::uint32_t> row_of_, own_row_of_;
};

}  // namespace triptych::cuda::plain
