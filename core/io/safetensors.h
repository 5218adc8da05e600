// Weights as safetensors files (https://github.com/huggingface/safetensors): 8 bytes of header
// length, a JSON header, dense little-endian data. The reader is strict: everything is validated
// before a tensor is allocated, and a file is either loaded whole or refused with IoError.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/input_file.h"
#include "core/tensor/tensor.h"

namespace triptych {

inline constexpr std::int64_t kMaxSafetensorsHeader = std::int64_t{16} << 20;

using TensorMap = std::map<std::string, Tensor>;
using StringMap = std::map<std::string, std::string>;

struct Safetensors {
  TensorMap tensors;
  StringMap metadata;
};

/// One tensor of the header. `offset` counts from the first byte after the header.
struct SafetensorsEntry {
  std::string name;
  TensorSpec spec;
  std::int64_t offset = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< by ascending offset
  StringMap metadata;
};

/// Checks `json` against a file with `data_bytes` after the header: names are unique, dtypes known,
/// sizes equal shape times dtype, and the ranges cover the data without overlap, hole or rest.
/// Throws IoError, or UnsupportedError for a dtype of the format that Triptych lacks.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes);

Safetensors read_safetensors(const InputFile& file);

inline Safetensors load_safetensors(const std::filesystem::path& path,
                                    std::int64_t max_bytes = kAnySize) {
  return read_safetensors(InputFile(path, max_bytes));
}

/// A tensor that is fetched when its turn to be written comes, so that all of a large model need
/// not be in host memory at once.
struct TensorSource {
  TensorSpec spec;
  std::function<Tensor()> read;
};
using TensorSources = std::map<std::string, TensorSource>;

/// Sources that copy from `tensors`, which must outlive them.
TensorSources sources_of(const TensorMap& tensors);

/// Appends to `file`, which its caller commits. Returns the SHA-256 of the written data.
std::string write_safetensors(AtomicFile& file, const TensorSources& sources,
                              const StringMap& metadata = {});
/// Replaces `path` atomically. Returns the SHA-256 of the file.
std::string save_safetensors_from(const std::filesystem::path& path, const TensorSources& sources,
                                  const StringMap& metadata = {});
std::string save_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                             const StringMap& metadata = {});

namespace internal {
/// Throws IoError when `tensor` is Bool and holds a byte that is neither 0 nor 1, which would be
/// undefined behaviour to read as bool.
void require_valid_bools(const Tensor& tensor);
}  // namespace internal

}  // namespace triptych
