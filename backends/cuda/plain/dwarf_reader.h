// Numbers and texts in a section of DWARF (version 4, section 7.6), read one after another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "core/base/error.h"

namespace triptych::cuda::plain {

/// Throws IoError where the section ends too early.
class DwarfReader {
 public:
  explicit DwarfReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, cut(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> cut(std::size_t count) {
    if (count > bytes_.size()) throw IoError("the debug information is cut short");
    const auto part = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return part;
  }
  std::uint64_t unsigned_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = take<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) break;
    }
    return value;
  }
  std::int64_t signed_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
      const auto byte = take<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7FU} << shift;
      shift += 7;
      if ((byte & 0x80U) != 0) continue;
      if ((byte & 0x40U) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      break;
    }
    return static_cast<std::int64_t>(value);
  }
  std::string text() {
    const auto end = std::ranges::find(bytes_, std::byte{0});
    const auto found = cut(static_cast<std::size_t>(end - bytes_.begin()));
    take<std::uint8_t>();
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace triptych::cuda::plain
