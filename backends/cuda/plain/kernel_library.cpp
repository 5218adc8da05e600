// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/kernel_library.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "backends/cuda/plain/watch.h"
#include "core/base/error.h"

namespace triptych::cuda::plain {
namespace {

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The variable's own name of "tiled(float const*, int)::tile".
std::string short_name(const std::string& symbol) {
  const auto name = demangle(symbol);
  const auto at = name.rfind("::");
  return at == std::string::npos ? name : name.substr(at + 2);
}

}  // namespace

KernelLibrary::KernelLibrary(const std::filesystem::path& file) : file_(file) {
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
  places_ = CodePlaces(file, base_);
  read_alignments(file);
  read_pieces(file);
}

void KernelLibrary::read_variables(const ObjectFile& file) {
  for (const auto& symbol : file.symbols()) {
    if (!symbol.defined) continue;
    if (symbol.name == kDynamicShared) dynamic_offset_ = symbol.value;
    if (symbol.kind == Symbol::Kind::Function || symbol.kind == Symbol::Kind::Variable) {
      symbols_[symbol.name] = base_ + symbol.value;
    }
    if (symbol.bytes == 0) continue;
    const bool is_shared = symbol.kind == Symbol::Kind::ThreadLocal;
    if (!is_shared && symbol.kind != Symbol::Kind::Variable) continue;
    const Variable variable = {short_name(symbol.name), symbol.name,
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

void KernelLibrary::read_pieces(const ObjectFile& file) {
  const auto bytes = file.text(kPieces);
  pieces_.resize(bytes.size() / sizeof(Piece));
  std::memcpy(pieces_.data(), bytes.data(), pieces_.size() * sizeof(Piece));
  for (auto& piece : pieces_) {
    piece.begin += base_;
    if (piece.branch != 0) piece.branch += base_;
  }
  std::ranges::sort(pieces_, {}, &Piece::begin);
}

std::size_t KernelLibrary::piece_bytes(const void* pc, std::size_t bytes, std::size_t most) const {
  if (const auto* row = places_.row(pc)) {
    const auto found = alignments_.find({last_name(places_.file_of(*row)), row->line, row->column});
    if (found != alignments_.end()) most = std::min(most, found->second);
  }
  return std::min(most, bytes & (~bytes + 1));
}

std::byte* KernelLibrary::shared_memory() const {
  return static_cast<std::byte*>(dlsym(handle_, kDynamicShared)) - dynamic_offset_;
}

std::size_t KernelLibrary::shared_bytes_of(const std::string& function) const {
  if (!function.starts_with("_Z")) return 0;
  const auto prefix = "_ZZ" + function.substr(2) + "E";  // of the Itanium C++ ABI
  std::size_t bytes = 0;
  for (const auto& variable : shared_) {
    if (variable.symbol.starts_with(prefix)) bytes += variable.bytes;
  }
  return bytes;
}

const Variable* KernelLibrary::variable_at(std::uintptr_t address) const {
  for (const auto* list : {&global_, &constant_}) {
    const auto found = std::ranges::find(*list, address, &Variable::begin);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

void KernelLibrary::note_constant(std::uintptr_t address) {
  const auto found = std::ranges::find(global_, address, &Variable::begin);
  if (found == global_.end()) return;
  constant_.push_back(*found);
  global_.erase(found);
}

bool KernelLibrary::is_variable(const void* address, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto contains = [&](const Variable& variable) {
    return at - variable.begin < variable.bytes && bytes <= variable.bytes - (at - variable.begin);
  };
  return std::ranges::any_of(global_, contains) || std::ranges::any_of(constant_, contains);
}

bool KernelLibrary::is_read_only(std::uintptr_t address) const {
  return std::ranges::any_of(read_only_, [&](const auto& range) {
    return range.first <= address && address < range.second;
  });
}

std::uintptr_t KernelLibrary::address_of(const std::string& symbol) const {
  const auto found = symbols_.find(symbol);
  return found == symbols_.end() ? 0 : found->second;
}

std::string KernelLibrary::symbol_at(std::uintptr_t address) const {
  for (const auto& [name, value] : symbols_) {
    if (value == address) return name;
  }
  return {};
}

}  // namespace triptych::cuda::plain
