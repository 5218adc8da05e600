// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/fat_binary.h"

#include <cstdint>
#include <cstring>
#include <span>

#include "tests/ptx/text.h"

namespace triptych::ptx {
namespace {

constexpr std::uint32_t kWrapperMark = 0x466243B1, kMark = 0xBA55ED50;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kLz4 = 0x2000, kCompressed = 0xF000;  ///< flags

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
  std::uint64_t bytes;  ///< of what follows, padded
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

/// Bytes of a block, in order.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : left_(bytes) {}

  bool is_empty() const { return left_.empty(); }
  std::span<const std::byte> take(std::size_t count) {
    if (count > left_.size()) throw Fault("an LZ4 block ends too early");
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  std::size_t byte() { return std::to_integer<std::size_t>(take(1)[0]); }
  /// A length whose first four bits are given; 15 says that bytes follow, up to one below 255.
  std::size_t length(std::size_t bits) {
    if (bits < 15) return bits;
    for (std::size_t more = 255; more == 255; bits += more) more = byte();
    return bits;
  }

 private:
  std::span<const std::byte> left_;
};

std::string text_of(const Entry& entry, const std::byte* body) {
  const std::span stored(body, entry.bytes);
  const auto compression = entry.flags & kCompressed;
  if (compression == kLz4) {
    return lz4_text(stored.first(entry.compressed_bytes), entry.plain_bytes);
  }
  if (compression != 0) {
    throw Fault("the PTX is compressed; compile with nvcc --compress-mode=speed");
  }
  return {reinterpret_cast<const char*>(stored.data()), stored.size()};
}

}  // namespace

// Sequences of literals and a copy of what came `distance` before; the last has literals alone.
std::string lz4_text(std::span<const std::byte> block, std::size_t bytes) {
  std::string text;
  text.reserve(bytes);
  for (Input input(block); !input.is_empty();) {
    const auto token = input.byte();
    const auto literals = input.take(input.length(token >> 4));
    text.append(reinterpret_cast<const char*>(literals.data()), literals.size());
    if (input.is_empty()) break;
    const auto low = input.byte(), distance = low | input.byte() << 8;
    if (distance == 0 || distance > text.size()) throw Fault("an LZ4 block copies from nowhere");
    for (auto count = input.length(token & 15) + 4; count > 0; --count) {
      text.push_back(text[text.size() - distance]);
    }
  }
  if (text.size() != bytes) throw Fault("an LZ4 block has another length than is told");
  return text;
}

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
