// The words of CUDA C++ for g++: declarations and the operations of a kernel on its block. For
// kernels of the program, and for those that it compiles when it runs (plain/words.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
// NOLINTBEGIN(bugprone-sizeof-expression): a value may be a pointer.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__
#define __grid_constant__

/// Attributes of functions that act for a kernel and are no access of its own: the compiler's
/// instrumentation leaves these out.
#if !defined(TRIPTYCH_UNWATCHED)
#define TRIPTYCH_UNWATCHED
#endif

namespace triptych::cuda::emulation {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// A place in a kernel's source. The part distinguishes several accesses of one column (a macro's,
/// for example).
class Location {
 public:
  constexpr Location() = default;
  constexpr Location(const char* file, unsigned line, unsigned column, unsigned part = 0)
      : file_(file),
        line_(line),
        column_(static_cast<std::uint16_t>(column)),
        part_(static_cast<std::uint16_t>(part)) {}
#if defined(__clang__)  // it would count the functions of std::source_location as accesses
  static constexpr Location current(const char* file = __builtin_FILE(),
                                    unsigned line = __builtin_LINE(),
                                    unsigned column = __builtin_COLUMN()) {
    return {file, line, column};
  }
#else
  static constexpr Location current(std::source_location at = std::source_location::current()) {
    return {at.file_name(), at.line(), at.column()};
  }
#endif
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }
  constexpr unsigned column() const { return column_; }
  constexpr unsigned part() const { return part_; }
  /// Names of files are compared as pointers: one place has one.
  constexpr bool operator==(const Location& other) const = default;

 private:
  const char* file_ = "";
  std::uint32_t line_ = 0;
  std::uint16_t column_ = 0, part_ = 0;
};

inline constexpr int warpSize = 32;

/// Services of the block that runs now for its threads (block.h).
void barrier(const Location& where);
/// Reasons for which the lanes of a warp meet.
enum class WarpWork : std::uint8_t {
  Exchange,     ///< shuffles and votes, which order no memory
  LoadMatrix,   ///< counted as the shared loads that it is
  Multiply,     ///< a product on the tensor cores
  Synchronise,  ///< warp barriers, which order it
};
/// Leaves `value` for the other lanes of `mask` and waits for theirs. True in the last lane to
/// arrive: its next actions happen before the others continue.
bool exchange(std::uint32_t mask, std::uint64_t value, const Location& where,
              WarpWork work = WarpWork::Exchange);
/// Value that `lane` left in the exchange before. It must have taken part.
std::uint64_t exchanged(std::uint32_t mask, unsigned lane, const Location& where);
unsigned lane_index();

template <class T>
TRIPTYCH_UNWATCHED std::uint64_t to_word(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}

template <class T>
TRIPTYCH_UNWATCHED T from_word(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

TRIPTYCH_UNWATCHED inline void __syncthreads(Location where = Location::current()) {
  barrier(where);
}

TRIPTYCH_UNWATCHED inline void __syncwarp(std::uint32_t mask = ~0U,
                                          Location where = Location::current()) {
  exchange(mask, 0, where, WarpWork::Synchronise);
}

/// Value of lane `source` of the caller's segment of `width` lanes.
template <class T>
TRIPTYCH_UNWATCHED T __shfl_sync(std::uint32_t mask, T value, int source, int width = warpSize,
                                 Location where = Location::current()) {
  exchange(mask, to_word(value), where);
  const unsigned lanes = static_cast<unsigned>(width);
  const unsigned segment = lane_index() & ~(lanes - 1);
  return from_word<T>(
      exchanged(mask, segment + (static_cast<unsigned>(source) & (lanes - 1)), where));
}

template <class T>
TRIPTYCH_UNWATCHED T __shfl_xor_sync(std::uint32_t mask, T value, int lane_mask,
                                     int width = warpSize, Location where = Location::current()) {
  exchange(mask, to_word(value), where);
  const unsigned lanes = static_cast<unsigned>(width), lane = lane_index();
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  // A lane may read from its own segment and those below it.
  return source <= (lane | (lanes - 1)) ? from_word<T>(exchanged(mask, source, where)) : value;
}

template <class T>
TRIPTYCH_UNWATCHED T __shfl_down_sync(std::uint32_t mask, T value, unsigned delta,
                                      int width = warpSize, Location where = Location::current()) {
  exchange(mask, to_word(value), where);
  const unsigned lanes = static_cast<unsigned>(width), lane = lane_index();
  return (lane & (lanes - 1)) + delta < lanes ? from_word<T>(exchanged(mask, lane + delta, where))
                                              : value;
}

template <class T>
TRIPTYCH_UNWATCHED T __shfl_up_sync(std::uint32_t mask, T value, unsigned delta,
                                    int width = warpSize, Location where = Location::current()) {
  exchange(mask, to_word(value), where);
  const unsigned lanes = static_cast<unsigned>(width), lane = lane_index();
  return (lane & (lanes - 1)) >= delta ? from_word<T>(exchanged(mask, lane - delta, where)) : value;
}

TRIPTYCH_UNWATCHED inline std::uint32_t __ballot_sync(std::uint32_t mask, int predicate,
                                                      Location where = Location::current()) {
  exchange(mask, predicate != 0 ? 1 : 0, where);
  std::uint32_t votes = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    votes |= static_cast<std::uint32_t>(exchanged(mask, lane, where)) << lane;
  }
  return votes;
}

TRIPTYCH_UNWATCHED inline int __any_sync(std::uint32_t mask, int predicate,
                                         Location where = Location::current()) {
  return __ballot_sync(mask, predicate, where) != 0 ? 1 : 0;
}

TRIPTYCH_UNWATCHED inline int __all_sync(std::uint32_t mask, int predicate,
                                         Location where = Location::current()) {
  return __ballot_sync(mask, predicate, where) == mask ? 1 : 0;
}

}  // namespace triptych::cuda::emulation
// NOLINTEND(bugprone-sizeof-expression)
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
