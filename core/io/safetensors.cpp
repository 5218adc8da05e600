// SPDX-License-Identifier: Apache-2.0
#include "core/io/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/io/atomic_file.h"
#include "core/io/sha256.h"

namespace triptych {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are stored as they lie");

constexpr std::int64_t kLengthBytes = 8;

constexpr std::string_view kFormatNames[] = {"F32", "BF16", "F16", "I8",
                                             "U8",  "I32",  "I64", "BOOL"};

std::string_view format_name(DType dtype) { return kFormatNames[static_cast<std::size_t>(dtype)]; }

using Item = TensorSources::value_type;

/// Wider dtypes first, so that every tensor is aligned to its own element size.
std::vector<const Item*> storage_order(const TensorSources& sources) {
  std::vector<const Item*> order;
  for (const auto& item : sources) order.push_back(&item);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const Item* item) { return dtype_size(item->second.spec.dtype); });
  return order;
}

std::string header_json(const std::vector<const Item*>& order, const StringMap& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const auto* item : order) {
    const auto& [name, source] = *item;
    if (name == "__metadata__") throw InvalidArgument("a tensor cannot be named \"__metadata__\"");
    const auto end = offset + source.spec.bytes();
    header[name] = {{"dtype", format_name(source.spec.dtype)},
                    {"shape", source.spec.shape.dims()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    auto text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgument("a tensor's name or the metadata is not valid UTF-8");
  }
}

}  // namespace

namespace internal {

void require_valid_bools(const Tensor& tensor) {
  if (tensor.dtype() != DType::Bool) return;
  const auto valid =
      std::ranges::all_of(tensor.bytes(), [](std::byte b) { return b <= std::byte{1}; });
  if (!valid) throw IoError("a boolean is stored as neither 0 nor 1");
}

}  // namespace internal

Safetensors read_safetensors(const InputFile& file) {
  if (file.size() < kLengthBytes) file.refuse("too short for a safetensors file");
  std::array<std::byte, kLengthBytes> prefix;
  file.read(0, prefix);
  const auto length = std::bit_cast<std::uint64_t>(prefix);
  const auto rest = file.size() - kLengthBytes;
  if (length > static_cast<std::uint64_t>(std::min(rest, kMaxSafetensorsHeader))) {
    file.refuse(fmt::format("claims a header of {} bytes; {} bytes follow, the limit is {}", length,
                            rest, kMaxSafetensorsHeader));
  }
  const auto header_bytes = static_cast<std::int64_t>(length);
  const auto text = file.read_text(kLengthBytes, header_bytes);
  return file.named([&] {
    auto header = parse_safetensors_header(text, rest - header_bytes);
    Safetensors result;
    result.metadata = std::move(header.metadata);
    for (auto& entry : header.entries) {
      Tensor tensor(std::move(entry.spec));
      file.read(kLengthBytes + header_bytes + entry.offset, tensor.bytes());
      internal::require_valid_bools(tensor);
      result.tensors.emplace(std::move(entry.name), std::move(tensor));
    }
    return result;
  });
}

TensorSources sources_of(const TensorMap& tensors) {
  TensorSources sources;
  for (const auto& [name, tensor] : tensors) {
    sources.emplace(name, TensorSource{tensor.spec(), [&t = tensor] { return t.clone(); }});
  }
  return sources;
}

std::string save_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                             const StringMap& metadata) {
  return save_safetensors_from(path, sources_of(tensors), metadata);
}

std::string write_safetensors(AtomicFile& file, const TensorSources& sources,
                              const StringMap& metadata) {
  const auto order = storage_order(sources);
  const auto header = header_json(order, metadata);
  if (std::ssize(header) > kMaxSafetensorsHeader) {
    throw InvalidArgument("too many tensors for one safetensors file");
  }
  Sha256 digest;
  const auto put = [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    digest.update(bytes);
  };
  const auto length =
      std::bit_cast<std::array<std::byte, kLengthBytes>>(std::uint64_t{header.size()});
  put(length);
  put(std::as_bytes(std::span(header)));
  for (const auto* item : order) {
    const auto tensor = item->second.read();
    TRIPTYCH_ASSERT(tensor.spec() == item->second.spec);
    put(tensor.bytes());
  }
  return digest.finish();
}

std::string save_safetensors_from(const std::filesystem::path& path, const TensorSources& sources,
                                  const StringMap& metadata) {
  AtomicFile file(path);
  auto sha256 = write_safetensors(file, sources, metadata);
  file.commit();
  return sha256;
}

}  // namespace triptych
