// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/kernel_library.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <sstream>

#include "backends/cuda/plain/watch.h"
#include "core/base/error.h"

namespace triptych::cuda::plain {
namespace {

/// Files that are not a student's: compilers', systems' and this project's headers.
bool is_foreign(std::string_view file) {
  return file.starts_with("/usr/") || file.find("backends/cuda/plain/") != file.npos ||
         file.find("backends/cuda/emulation/") != file.npos;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The variable's own name of "tiled(float const*, int)::tile".
std::string short_name(const std::string& symbol) {
  const auto name = demangle(symbol);
  const auto at = name.rfind("::");
  return at == std::string::npos ? name : name.substr(at + 2);
}

}  // namespace

KernelLibrary::KernelLibrary(const std::filesystem::path& file) {
  const ObjectFile object(file);
  handle_ = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw IoError(fmt::format("\"{}\" cannot be opened: {}", file.string(), dlerror()));
  }
  auto* bind = reinterpret_cast<unsigned (*)(const Services*)>(dlsym(handle_, "triptych_bind"));
  if (bind == nullptr || bind(&watch_services()) != kServicesVersion) {
    dlclose(handle_);
    throw IoError(
        fmt::format("\"{}\" is no library of kernels of this version; build it again: "
                    "triptych kernel build",
                    file.string()));
  }
  read(object);
}

KernelLibrary::~KernelLibrary() { dlclose(handle_); }

void KernelLibrary::read(const ObjectFile& file) {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0) base_ = map->l_addr;
  const auto* table = static_cast<const KernelEntry*>(dlsym(handle_, "triptych_kernels"));
  const auto* count = static_cast<const unsigned*>(dlsym(handle_, "triptych_kernel_count"));
  if (table != nullptr && count != nullptr) kernels_ = {table, *count};
  read_variables(file);
  read_places(file);
  read_alignments(file);
}

void KernelLibrary::read_variables(const ObjectFile& file) {
  for (const auto& symbol : file.symbols()) {
    if (!symbol.defined) continue;
    if (symbol.name == kDynamicShared) dynamic_offset_ = symbol.value;
    if (symbol.bytes == 0) continue;
    const bool is_shared = symbol.kind == Symbol::Kind::ThreadLocal;
    if (!is_shared && symbol.kind != Symbol::Kind::Variable) continue;
    const Variable variable = {short_name(symbol.name),
                               is_shared ? symbol.value : base_ + symbol.value, symbol.bytes};
    if (is_shared) {
      shared_.push_back(variable);
    } else if (symbol.is_protected) {
      constant_.push_back(variable);
    } else if (file.is_writable(symbol)) {
      global_.push_back(variable);
    }
  }
  for (const auto& [begin, end] : file.read_only()) {
    read_only_.emplace_back(base_ + begin, base_ + end);
  }
}

/// Notes for each byte of the code where it comes from.
void KernelLibrary::read_places(const ObjectFile& file) {
  lines_ = file.lines();
  const auto [begin, end] = file.code();
  code_ = base_ + begin;
  row_of_.assign(end - begin, 0);
  own_row_of_.assign(end - begin, 0);
  std::uint32_t own = 0;
  for (std::size_t i = 0; i + 1 < lines_.rows.size(); ++i) {
    const auto& row = lines_.rows[i];
    const auto next = std::min(lines_.rows[i + 1].address, end);
    if (row.ends) own = 0;  // the rest is another function, which may be all foreign
    if (row.ends || row.address < begin || row.address >= next) continue;
    const auto number = static_cast<std::uint32_t>(i + 1);
    if (row.line != 0 && !is_foreign(lines_.files[row.file])) own = number;
    std::fill(row_of_.begin() + static_cast<std::ptrdiff_t>(row.address - begin),
              row_of_.begin() + static_cast<std::ptrdiff_t>(next - begin), number);
    std::fill(own_row_of_.begin() + static_cast<std::ptrdiff_t>(row.address - begin),
              own_row_of_.begin() + static_cast<std::ptrdiff_t>(next - begin), own);
  }
}

void KernelLibrary::read_alignments(const ObjectFile& file) {
  std::istringstream lines{file.text(kAlignments)};
  std::size_t bytes = 0;
  unsigned line = 0, column = 0;
  for (std::string name;
       lines >> bytes >> line >> column && std::getline(lines >> std::ws, name);) {
    auto& least = alignments_.try_emplace({name, line, column}, bytes).first->second;
    least = std::min(least, bytes);
  }
}

std::size_t KernelLibrary::piece_bytes(const void* pc, std::size_t bytes, std::size_t most) const {
  const auto at = reinterpret_cast<std::uintptr_t>(pc) - 1 - code_;
  if (at < row_of_.size() && row_of_[at] != 0) {
    const auto& row = lines_.rows[row_of_[at] - 1];
    const auto found = alignments_.find({last_name(lines_.files[row.file]), row.line, row.column});
    if (found != alignments_.end()) most = std::min(most, found->second);
  }
  return std::min(most, bytes & (~bytes + 1));
}

std::byte* KernelLibrary::shared_memory() const {
  return static_cast<std::byte*>(dlsym(handle_, kDynamicShared)) - dynamic_offset_;
}

bool KernelLibrary::is_read_only(std::uintptr_t address) const {
  return std::ranges::any_of(read_only_, [&](const auto& range) {
    return range.first <= address && address < range.second;
  });
}

emulation::Location KernelLibrary::place(const void* pc) const {
  // The address to which a call returns may be that of the next row.
  const auto at = reinterpret_cast<std::uintptr_t>(pc) - 1 - code_;
  if (at >= own_row_of_.size() || own_row_of_[at] == 0) return {};
  const auto& row = lines_.rows[own_row_of_[at] - 1];
  // Their addresses distinguish two calls of one column.
  return {lines_.files[row.file].c_str(), row.line, row.column, static_cast<unsigned>(at)};
}

bool KernelLibrary::is_own(const void* pc) const {
  const auto at = reinterpret_cast<std::uintptr_t>(pc) - 1 - code_;
  return at < row_of_.size() && row_of_[at] != 0 && row_of_[at] == own_row_of_[at];
}

}  // namespace triptych::cuda::plain
