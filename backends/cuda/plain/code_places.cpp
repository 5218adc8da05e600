// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/code_places.h"

#include <algorithm>
#include <string_view>

namespace triptych::cuda::plain {
namespace {

/// Files that are not a user's: compilers', systems' and this project's headers.
bool is_foreign(std::string_view file) {
  return file.starts_with("/usr/") || file.find("backends/cuda/plain/") != file.npos ||
         file.find("backends/cuda/emulation/") != file.npos ||
         file.find("backends/cuda/program/") != file.npos;
}

}  // namespace

CodePlaces::CodePlaces(const ObjectFile& file, std::uintptr_t base) : lines_(file.lines()) {
  const auto [begin, end] = file.code();
  code_ = base + begin;
  row_of_.assign(end - begin, 0);
  own_row_of_.assign(end - begin, 0);
  std::uint32_t own = 0;
  for (std::size_t i = 0; i + 1 < lines_.rows.size(); ++i) {
    const auto& row = lines_.rows[i];
    const auto next = std::min(lines_.rows[i + 1].address, end);
    if (row.ends) own = 0;  // a new function begins, which may be all foreign
    if (row.ends || row.address < begin || row.address >= next) continue;
    const auto number = static_cast<std::uint32_t>(i + 1);
    if (row.line != 0 && !is_foreign(lines_.files[row.file])) own = number;
    std::fill(row_of_.begin() + static_cast<std::ptrdiff_t>(row.address - begin),
              row_of_.begin() + static_cast<std::ptrdiff_t>(next - begin), number);
    std::fill(own_row_of_.begin() + static_cast<std::ptrdiff_t>(row.address - begin),
              own_row_of_.begin() + static_cast<std::ptrdiff_t>(next - begin), own);
  }
}

emulation::Location CodePlaces::place(const void* pc) const {
  // The address to which a call returns may be that of the next row.
  const auto at = reinterpret_cast<std::uintptr_t>(pc) - 1 - code_;
  if (at >= own_row_of_.size() || own_row_of_[at] == 0) return {};
  const auto& row = lines_.rows[own_row_of_[at] - 1];
  // Their addresses distinguish two calls of one column.
  return {lines_.files[row.file].c_str(), row.line, row.column, static_cast<unsigned>(at)};
}

bool CodePlaces::is_own(const void* pc) const {
  const auto at = reinterpret_cast<std::uintptr_t>(pc) - 1 - code_;
  return at < row_of_.size() && row_of_[at] != 0 && row_of_[at] == own_row_of_[at];
}

std::set<std::pair<std::string, unsigned>> CodePlaces::own_lines() const {
  std::set<std::pair<std::string, unsigned>> lines;
  for (const auto& row : lines_.rows) {
    const auto& file = lines_.files[row.file];
    if (!row.ends && row.line != 0 && !is_foreign(file)) lines.emplace(file, row.line);
  }
  return lines;
}

const LineRow* CodePlaces::row(const void* pc) const {
  const auto at = reinterpret_cast<std::uintptr_t>(pc) - 1 - code_;
  return at < row_of_.size() && row_of_[at] != 0 ? &lines_.rows[row_of_[at] - 1] : nullptr;
}

}  // namespace triptych::cuda::plain
