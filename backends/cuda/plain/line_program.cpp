// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/line_program.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/cuda/plain/dwarf_reader.h"
#include "core/base/error.h"

namespace triptych::cuda::plain {
namespace {

/// Opcodes, as the standard names them.
enum Standard : std::uint8_t {
  kExtended,
  kCopy,
  kAdvancePc,
  kAdvanceLine,
  kSetFile,
  kSetColumn,
  kNegateStatement,
  kSetBasicBlock,
  kConstAddPc,
  kFixedAdvancePc,
};
enum Extended : std::uint8_t { kEndSequence = 1, kSetAddress = 2 };

/// The program of one compiled file.
class Program {
 public:
  Program(DwarfReader reader, LineTable& table) : reader_(reader), table_(table) {
    const auto version = reader_.take<std::uint16_t>();
    if (version != 4) {
      throw IoError(
          fmt::format("the table of source lines is of version {} of DWARF; 4 is "
                      "understood",
                      version));
    }
    DwarfReader header(reader_.cut(reader_.take<std::uint32_t>()));
    least_instruction_ = header.take<std::uint8_t>();
    header.take<std::uint8_t>();  // operations per instruction: of machines with long words
    header.take<std::uint8_t>();  // whether rows begin statements
    line_base_ = header.take<std::uint8_t>();
    if (line_base_ >= 128) line_base_ -= 256;  // a signed byte
    line_range_ = std::max<std::uint8_t>(header.take<std::uint8_t>(), 1);
    opcode_base_ = header.take<std::uint8_t>();
    for (unsigned opcode = 1; opcode < opcode_base_; ++opcode) {
      lengths_.push_back(header.take<std::uint8_t>());
    }
    read_files(header);
  }

  void run() {
    while (!reader_.empty()) step();
  }

 private:
  void read_files(DwarfReader& header) {
    first_file_ = static_cast<unsigned>(table_.files.size());
    std::vector<std::string> folders = {""};
    for (auto name = header.text(); !name.empty(); name = header.text()) folders.push_back(name);
    for (auto name = header.text(); !name.empty(); name = header.text()) {
      const auto folder = header.unsigned_number();
      header.unsigned_number();  // time
      header.unsigned_number();  // size
      const bool plain = folder == 0 || folder >= folders.size() || name.starts_with('/');
      table_.files.push_back(plain ? name : folders[folder] + "/" + name);
    }
  }

  void step() {
    const auto opcode = reader_.take<std::uint8_t>();
    if (opcode >= opcode_base_) {
      advance(static_cast<unsigned>(opcode - opcode_base_) / line_range_);
      line_ += line_base_ + (opcode - opcode_base_) % line_range_;
      emit(false);
      return;
    }
    switch (opcode) {
      case kExtended:
        extended();
        break;
      case kCopy:
        emit(false);
        break;
      case kAdvancePc:
        advance(reader_.unsigned_number());
        break;
      case kAdvanceLine:
        line_ += reader_.signed_number();
        break;
      case kSetFile:
        file_ = reader_.unsigned_number();
        break;
      case kSetColumn:
        column_ = reader_.unsigned_number();
        break;
      case kNegateStatement:
      case kSetBasicBlock:
        break;
      case kConstAddPc:
        advance((255U - opcode_base_) / line_range_);
        break;
      case kFixedAdvancePc:
        address_ += reader_.take<std::uint16_t>();
        break;
      default:
        for (unsigned i = 0; i < lengths_[opcode - 1U]; ++i) reader_.unsigned_number();
    }
  }

  void extended() {
    DwarfReader operation(reader_.cut(reader_.unsigned_number()));
    if (operation.empty()) return;
    const auto opcode = operation.take<std::uint8_t>();
    if (opcode == kSetAddress) address_ = operation.take<std::uint64_t>();
    if (opcode != kEndSequence) return;
    emit(true);
    address_ = 0;
    file_ = 1;
    line_ = 1;
    column_ = 0;
  }

  void advance(std::uint64_t instructions) { address_ += instructions * least_instruction_; }

  void emit(bool ends) {
    const auto file = first_file_ + static_cast<unsigned>(file_) - 1;
    if (file >= table_.files.size()) return;
    table_.rows.push_back({.address = address_,
                           .file = file,
                           .line = static_cast<unsigned>(line_),
                           .column = static_cast<unsigned>(column_),
                           .ends = ends});
  }

  DwarfReader reader_;
  LineTable& table_;
  unsigned least_instruction_ = 1, line_range_ = 1, opcode_base_ = 1, first_file_ = 0;
  int line_base_ = 0;
  std::vector<std::uint8_t> lengths_;
  std::uint64_t address_ = 0, file_ = 1, column_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

LineTable read_line_programs(std::span<const std::byte> section) {
  LineTable table;
  DwarfReader reader(section);
  while (reader.left() > sizeof(std::uint32_t)) {
    const auto length = reader.take<std::uint32_t>();
    Program(DwarfReader(reader.cut(length)), table).run();
  }
  // Where a piece of code begins at the end of another, the beginning counts.
  std::ranges::stable_sort(table.rows, [](const LineRow& a, const LineRow& b) {
    return a.address != b.address ? a.address < b.address : a.ends && !b.ends;
  });
  return table;
}

}  // namespace triptych::cuda::plain
