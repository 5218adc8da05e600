// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/fat_binary.h"

#include <cstdint>
#include <cstring>

#include "core/base/shared_library.h"
#include "tests/ptx/text.h"

namespace triptych::ptx {
namespace {

constexpr std::uint32_t kWrapperMark = 0x466243B1, kMark = 0xBA55ED50;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kZstd = 0x8000, kCompressed = 0xF000;  ///< flags

struct Wrapper {
  std::uint32_t mark, version;
  const std::byte* data;
  void* unused;
};
struct Header {
  std::uint32_t mark;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;  ///< of the entries
};
struct Entry {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  ///< of the rest, padded
  std::uint32_t compressed_bytes, options;
  std::uint16_t minor, major;
  std::uint32_t architecture, name, name_bytes;
  std::uint64_t flags, unused, plain_bytes;
};
static_assert(sizeof(Entry) == 64);

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// A function of libzstd, which every Debian has for dpkg. Its header is in another package.
using Decompress = std::size_t (*)(void*, std::size_t, const void*, std::size_t);

Decompress zstd() {
  static SharedLibrary library("libzstd.so.1", {});
  static const Decompress decompress = library.find("ZSTD_decompress");
  if (decompress == nullptr) throw Fault("the PTX is compressed: " + library.problem());
  return decompress;
}

std::string text_of(const Entry& entry, const std::byte* body) {
  const auto compression = entry.flags & kCompressed;
  if (compression == kZstd) {
    std::string text(entry.plain_bytes, '\0');
    const auto bytes = zstd()(text.data(), text.size(), body, entry.compressed_bytes);
    if (bytes != text.size()) throw Fault("the PTX is damaged");
    return text;
  }
  if (compression != 0) {
    throw Fault("the PTX is compressed otherwise than by nvcc's --compress-mode=default");
  }
  return {reinterpret_cast<const char*>(body), entry.bytes};
}

}  // namespace

std::string ptx_of(const void* wrapper) {
  const auto outer = read<Wrapper>(static_cast<const std::byte*>(wrapper));
  if (outer.mark != kWrapperMark) throw Fault("not nvcc's wrapper of a fat binary");
  const auto header = read<Header>(outer.data);
  if (header.mark != kMark) throw Fault("not a fat binary");
  const auto* at = outer.data + header.header_bytes;
  const auto* end = at + header.bytes;
  while (at < end) {
    const auto entry = read<Entry>(at);
    const auto* body = at + entry.header_bytes;
    at = body + entry.bytes;
    if (entry.kind != kPtx) continue;
    const auto padded = text_of(entry, body);
    return padded.substr(0, padded.find('\0'));
  }
  throw Fault("no PTX was compiled in; compile for 90a (90a-real leaves it out)");
}

}  // namespace triptych::ptx
