// An ELF file that g++ has written for this processor: its symbols, its sections, and the lines of
// source that its instructions come from (.debug_line, version 4 of DWARF).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::cuda::plain {

struct Symbol {
  enum class Kind : std::uint8_t { Function, Variable, ThreadLocal, Other };
  std::string name;  ///< as the linker knows it
  Kind kind = Kind::Other;
  bool defined = false;
  bool is_protected = false;  ///< its visibility
  std::size_t section = 0;
  std::uint64_t value = 0, bytes = 0;
};

/// Where in the source the instructions from `address` to the next row come from.
struct LineRow {
  std::uint64_t address = 0;
  unsigned file = 0;  ///< of LineTable::files
  unsigned line = 0, column = 0;
  bool ends = false;  ///< behind the last instruction of a piece of code
};

struct LineTable {
  std::vector<std::string> files;
  std::vector<LineRow> rows;  ///< by address
};

class ObjectFile {
 public:
  /// Throws IoError when it cannot be read or is none.
  explicit ObjectFile(const std::filesystem::path& path);

  const std::vector<Symbol>& symbols() const { return symbols_; }
  /// Functions with a noted entry (the attribute patchable_function_entry), of a file that was not
  /// linked yet.
  std::vector<Symbol> noted_functions() const;
  /// Addresses of the sections that are data which nobody writes.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> read_only() const;
  bool is_writable(const Symbol& symbol) const;
  /// Addresses of the sections that hold instructions: from the first to behind the last.
  std::pair<std::uint64_t, std::uint64_t> code() const;
  /// Empty where the file has none.
  LineTable lines() const;
  /// Content of a section. Empty where the file has none of that name.
  std::string text(std::string_view section) const;

 private:
  struct Section {
    std::string name;
    std::uint32_t name_at = 0, type = 0, link = 0;
    std::uint64_t flags = 0, address = 0, offset = 0, bytes = 0;
  };
  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t bytes) const;
  std::span<const std::byte> content(const Section& section) const;
  void read_sections();
  void read_symbols();

  std::string path_;
  std::vector<std::byte> bytes_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
};

/// The name of a symbol as C++ writes it.
std::string demangle(const std::string& name);

}  // namespace triptych::cuda::plain
