// NumPy's .npy files, versions 1.0 and 2.0, C order, little-endian. The reader accepts exactly the
// header that NumPy writes and checks it against the file's size before anything is allocated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/io/atomic_file.h"
#include "core/io/input_file.h"
#include "core/tensor/tensor.h"

namespace triptych {

/// The tensor described by the Python dictionary of a .npy header. Throws IoError, or
/// UnsupportedError for Fortran order, big-endian data and element types that Triptych lacks.
TensorSpec parse_npy_header(std::string_view dictionary);

/// Throws IoError or UnsupportedError with the file's name.
Tensor load_npy(const std::filesystem::path& path, std::int64_t max_bytes = kAnySize);

/// Spec of the tensor that a file holds, by its header alone. Throws likewise.
TensorSpec load_npy_spec(const std::filesystem::path& path);

/// True when `value` rounds to a normal float32, or is 0, infinite or not a number in both.
bool fits_float(double value);

/// load_npy for a file of float64, each number rounded to float32. Throws UnsupportedError when one
/// does not fit.
Tensor load_npy_narrowed(const std::filesystem::path& path, std::int64_t max_bytes = kAnySize);

/// The bytes of a file. bf16, which NumPy has not, becomes float32.
std::string encode_npy(const Tensor& tensor);
/// The same as float64, of a tensor of f32.
std::string encode_npy_widened(const Tensor& tensor);
/// Appends encode_npy(tensor), or encode_npy_widened(tensor), to `file` without a copy in memory.
/// Returns the number of bytes.
std::int64_t write_npy(AtomicFile& file, const Tensor& tensor, bool widened = false);

/// Replaces `path` atomically by encode_npy(tensor).
void save_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace triptych
