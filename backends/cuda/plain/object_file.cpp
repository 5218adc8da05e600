// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/object_file.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>

#include "backends/cuda/plain/line_program.h"
#include "core/base/error.h"

namespace triptych::cuda::plain {
namespace {

template <class T>
T read(std::span<const std::byte> from, std::size_t index = 0) {
  T value;
  std::memcpy(&value, from.subspan(index * sizeof(T), sizeof(T)).data(), sizeof(T));
  return value;
}

/// The text that ends with a zero at this place of a table.
std::string text_at(std::span<const std::byte> table, std::size_t offset) {
  const auto rest = table.subspan(std::min(offset, table.size()));
  const auto end = std::ranges::find(rest, std::byte{0});
  return {reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin())};
}

Symbol::Kind kind_of(unsigned type) {
  switch (type) {
    case STT_FUNC:
      return Symbol::Kind::Function;
    case STT_OBJECT:
      return Symbol::Kind::Variable;
    case STT_TLS:
      return Symbol::Kind::ThreadLocal;
    default:
      return Symbol::Kind::Other;
  }
}

}  // namespace

ObjectFile::ObjectFile(const std::filesystem::path& path) : path_(path.string()) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw IoError(fmt::format("cannot read \"{}\"", path_));
  bytes_.resize(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes_.data()), static_cast<std::streamsize>(bytes_.size()));
  if (!file || bytes_.size() < sizeof(Elf64_Ehdr) ||
      std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0 ||
      std::to_integer<int>(bytes_[EI_CLASS]) != ELFCLASS64) {
    throw IoError(fmt::format("\"{}\" is no library of this machine", path_));
  }
  read_sections();
  read_symbols();
}

std::span<const std::byte> ObjectFile::part(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
    throw IoError(fmt::format("\"{}\" is cut short", path_));
  }
  return std::span(bytes_).subspan(offset, bytes);
}

std::span<const std::byte> ObjectFile::content(const Section& section) const {
  if (section.type == SHT_NOBITS) return {};
  return part(section.offset, section.bytes);
}

void ObjectFile::read_sections() {
  const auto header = read<Elf64_Ehdr>(part(0, sizeof(Elf64_Ehdr)));
  const auto table = part(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto entry = read<Elf64_Shdr>(table, i);
    sections_.push_back({.name_at = entry.sh_name,
                         .type = entry.sh_type,
                         .link = entry.sh_link,
                         .flags = entry.sh_flags,
                         .address = entry.sh_addr,
                         .offset = entry.sh_offset,
                         .bytes = entry.sh_size});
  }
  if (header.e_shstrndx >= sections_.size()) return;
  const auto names = content(sections_[header.e_shstrndx]);
  for (auto& section : sections_) section.name = text_at(names, section.name_at);
}

void ObjectFile::read_symbols() {
  for (const auto& section : sections_) {
    if (section.type != SHT_SYMTAB || section.link >= sections_.size()) continue;
    const auto names = content(sections_[section.link]);
    const auto table = content(section);
    for (std::size_t i = 0; i < table.size() / sizeof(Elf64_Sym); ++i) {
      const auto entry = read<Elf64_Sym>(table, i);
      symbols_.push_back({.name = text_at(names, entry.st_name),
                          .kind = kind_of(ELF64_ST_TYPE(entry.st_info)),
                          .defined = entry.st_shndx != SHN_UNDEF,
                          .is_protected = ELF64_ST_VISIBILITY(entry.st_other) == STV_PROTECTED,
                          .section = entry.st_shndx,
                          .value = entry.st_value,
                          .bytes = entry.st_size});
    }
  }
}

std::vector<Symbol> ObjectFile::noted_functions() const {
  std::vector<Symbol> noted;
  for (const auto& section : sections_) {
    if (section.type != SHT_RELA || section.name != ".rela__patchable_function_entries") continue;
    const auto table = content(section);
    for (std::size_t i = 0; i < table.size() / sizeof(Elf64_Rela); ++i) {
      const auto entry = read<Elf64_Rela>(table, i);
      const auto& base = symbols_.at(ELF64_R_SYM(entry.r_info));
      const auto address = base.value + static_cast<std::uint64_t>(entry.r_addend);
      const auto found = std::ranges::find_if(symbols_, [&](const Symbol& symbol) {
        return symbol.kind == Symbol::Kind::Function && symbol.section == base.section &&
               symbol.value <= address && address < symbol.value + symbol.bytes;
      });
      if (found != symbols_.end()) noted.push_back(*found);
    }
  }
  return noted;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> ObjectFile::read_only() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& section : sections_) {
    const auto kind = section.flags & (SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR);
    if (kind == SHF_ALLOC) ranges.emplace_back(section.address, section.address + section.bytes);
  }
  return ranges;
}

bool ObjectFile::is_writable(const Symbol& symbol) const {
  return symbol.section < sections_.size() && (sections_[symbol.section].flags & SHF_WRITE) != 0;
}

std::pair<std::uint64_t, std::uint64_t> ObjectFile::code() const {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
  for (const auto& section : sections_) {
    if ((section.flags & SHF_EXECINSTR) == 0) continue;
    begin = std::min(begin, section.address);
    end = std::max(end, section.address + section.bytes);
  }
  return {std::min(begin, end), end};
}

LineTable ObjectFile::lines() const {
  const auto section = std::ranges::find(sections_, ".debug_line", &Section::name);
  return section == sections_.end() ? LineTable() : read_line_programs(content(*section));
}

std::string ObjectFile::text(std::string_view section) const {
  const auto found = std::ranges::find(sections_, section, &Section::name);
  if (found == sections_.end()) return {};
  const auto bytes = content(*found);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace triptych::cuda::plain
