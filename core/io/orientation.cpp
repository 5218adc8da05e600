// SPDX-License-Identifier: Apache-2.0
#include "core/io/orientation.h"

#include <array>
#include <cstring>
#include <optional>

namespace triptych {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;
constexpr std::size_t kEntryBytes = 12;

/// Unsigned numbers of a block in either byte order, none beyond its end.
class Numbers {
 public:
  Numbers(std::span<const std::byte> block, bool big_endian)
      : block_(block), big_endian_(big_endian) {}

  std::optional<std::uint32_t> at(std::size_t offset, std::size_t bytes) const {
    if (offset > block_.size() || block_.size() - offset < bytes) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto place = big_endian_ ? i : bytes - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(block_[offset + place]);
    }
    return value;
  }

 private:
  std::span<const std::byte> block_;
  bool big_endian_;
};

bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

}  // namespace

int exif_orientation(std::span<const std::byte> block) {
  using namespace std::string_view_literals;
  const bool big_endian = begins_with(block, "MM\0*"sv);
  if (!big_endian && !begins_with(block, "II*\0"sv)) return kAsStored;
  const Numbers numbers(block, big_endian);
  const auto directory = numbers.at(4, 4);
  const auto entries = directory ? numbers.at(*directory, 2) : std::nullopt;
  for (std::size_t i = 0; i < entries.value_or(0); ++i) {
    const auto entry = std::size_t{*directory} + 2 + i * kEntryBytes;
    const auto tag = numbers.at(entry, 2), kind = numbers.at(entry + 2, 2),
               value = numbers.at(entry + 8, 2);
    if (!value) break;
    if (tag != kOrientationTag || kind != kShort) continue;
    return *value >= 1 && *value <= 8 ? static_cast<int>(*value) : kAsStored;
  }
  return kAsStored;
}

int jpeg_orientation(std::span<const std::byte> file) {
  using namespace std::string_view_literals;
  constexpr std::uint32_t app1 = 0xE1, start_of_scan = 0xDA;
  const Numbers numbers(file, true);
  std::size_t at = 2;  // behind the start of the image
  while (numbers.at(at, 1) == 0xFF) {
    const auto kind = numbers.at(at + 1, 1);
    if (kind == 0xFF) {  // fill
      ++at;
      continue;
    }
    const auto length = numbers.at(at + 2, 2);
    if (!length || *length < 2 || kind == start_of_scan || file.size() - at - 2 < *length) break;
    const auto body = file.subspan(at + 4, *length - 2);
    constexpr auto mark = "Exif\0\0"sv;
    if (kind == app1 && begins_with(body, mark)) return exif_orientation(body.subspan(mark.size()));
    at += 2 + *length;
  }
  return kAsStored;
}

PixelPlace stored_place(int orientation, PixelPlace shown, std::int64_t width,
                        std::int64_t height) {
  const auto [x, y] = shown;
  switch (orientation) {
    case 2:
      return {width - 1 - x, y};
    case 3:
      return {width - 1 - x, height - 1 - y};
    case 4:
      return {x, height - 1 - y};
    case 5:
      return {y, x};
    case 6:
      return {y, height - 1 - x};
    case 7:
      return {width - 1 - y, height - 1 - x};
    case 8:
      return {width - 1 - y, x};
    default:
      return shown;
  }
}

std::string_view describe_orientation(int orientation) {
  constexpr std::array<std::string_view, 9> words = {"unknown",
                                                     "as stored",
                                                     "mirrored left to right",
                                                     "turned by 180 degrees",
                                                     "mirrored top to bottom",
                                                     "transposed",
                                                     "turned by 90 degrees",
                                                     "transposed and turned by 180 degrees",
                                                     "turned by 270 degrees"};
  return words[orientation >= 1 && orientation <= 8 ? static_cast<std::size_t>(orientation) : 0];
}

}  // namespace triptych
