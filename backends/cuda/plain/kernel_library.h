// A library of plain CUDA kernels, opened: its kernels, the variables that it keeps in shared and
// global memory, and the places in the source behind its instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "backends/cuda/plain/code_places.h"
#include "backends/cuda/plain/debug_info.h"
#include "backends/cuda/plain/object_file.h"
#include "backends/cuda/plain/services.h"

namespace triptych::cuda::plain {

/// Name of the symbol at which shared memory of a launch's choice begins (`extern __shared__`). The
/// variables of a fixed size lie before it.
inline constexpr const char* kDynamicShared = "triptych_dynamic_shared";
/// Bytes reserved for it.
inline constexpr std::size_t kMostDynamicBytes = 227 * 1024;

/// Ends the names of functions that are not watched: optimised ones for blocks that only run.
inline constexpr const char* kUnwatched = ".unwatched";

/// Section that lists types' alignments: a line "4 12 7 my.cu" for 4 bytes at line 12, column 7 of
/// a file of this name.
inline constexpr const char* kAlignments = ".triptych_alignments";

/// An array of `__shared__`, or a variable of the library in global or constant memory.
struct Variable {
  std::string name;         ///< as the source has it
  std::string symbol;       ///< as the linker knows it
  std::uint64_t begin = 0;  ///< from the start of shared memory, or an address
  std::uint64_t bytes = 0;
};

/// Section with an entry for each piece of straight code, as `Piece` has it. It is named like debug
/// information, so that linkers drop entries of functions that they drop.
inline constexpr const char* kPieces = ".debug_triptych_pieces";

/// A piece of straight code of a kernel.
struct Piece {
  std::uint64_t begin = 0;           ///< to which the call at its beginning returns
  std::uint64_t branch = 0;          ///< its conditional jump. 0: it has none
  std::uint8_t arithmetic[16] = {};  ///< number of instructions, by Arithmetic
};

class KernelLibrary {
 public:
  /// Throws IoError for a file that is no such library or was built by another version.
  explicit KernelLibrary(const std::filesystem::path& file);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  std::span<const KernelEntry> kernels() const { return kernels_; }

  /// Shared memory of the thread that calls: variables of fixed sizes, then kMostDynamicBytes.
  std::byte* shared_memory() const;
  /// Bytes of the variables that a function itself declares, by the linker's name for it.
  std::size_t shared_bytes_of(const std::string& function) const;
  /// Bytes of it before the part with a size that a launch chooses.
  std::size_t fixed_shared_bytes() const { return dynamic_offset_; }
  std::span<const Variable> shared_variables() const { return shared_; }
  /// `__device__` and `__constant__` variables.
  std::span<const Variable> global_variables() const { return global_; }
  std::span<const Variable> constant_variables() const { return constant_; }
  /// Address of a function or variable, by the linker's name for it. 0: none.
  std::uintptr_t address_of(const std::string& symbol) const;
  /// The reverse. Empty: none.
  std::string symbol_at(std::uintptr_t address) const;
  /// The `__device__` or `__constant__` variable that begins at an address. nullptr: none.
  const Variable* variable_at(std::uintptr_t address) const;
  /// The variable at this address is one of `__constant__`, which its symbol does not tell.
  void note_constant(std::uintptr_t address);
  /// True when these bytes belong to one of them.
  bool is_variable(const void* address, std::size_t bytes) const;
  /// True for an address in memory that the library may read and not write.
  bool is_read_only(std::uintptr_t address) const;

  /// By address.
  std::span<const Piece> pieces() const { return pieces_; }

  const CodePlaces& places() const { return places_; }
  /// Functions and variables, of a library for the debugger. Addresses are those of the file, from
  /// base() in memory.
  DebugInfo debug_info() const { return read_debug_info(ObjectFile(file_)); }
  std::uintptr_t base() const { return base_; }
  emulation::Location place(const void* pc) const { return places_.place(pc); }
  bool is_own(const void* pc) const { return places_.is_own(pc); }
  /// Bytes of each access of a copy of this many bytes: the alignment of its type at that place,
  /// and at most `most`.
  std::size_t piece_bytes(const void* pc, std::size_t bytes, std::size_t most) const;

 private:
  void read(const ObjectFile& file);
  void read_variables(const ObjectFile& file);
  void read_alignments(const ObjectFile& file);
  void read_pieces(const ObjectFile& file);

  std::filesystem::path file_;
  void* handle_ = nullptr;
  std::uintptr_t base_ = 0;
  std::span<const KernelEntry> kernels_;
  std::uint64_t dynamic_offset_ = 0;
  std::vector<Variable> shared_, global_, constant_;
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> read_only_;

  std::map<std::string, std::uintptr_t> symbols_;
  CodePlaces places_;
  std::vector<Piece> pieces_;
  /// Least alignment of the types that are accessed at a place: name of the file, line, column.
  std::map<std::tuple<std::string, unsigned, unsigned>, std::size_t> alignments_;
};

}  // namespace triptych::cuda::plain
