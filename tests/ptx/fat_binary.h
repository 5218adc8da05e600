// What nvcc puts into an object file for the CUDA runtime: code of several kinds in one block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace triptych::ptx {

/// The PTX text behind what nvcc's code hands to __cudaRegisterFatBinary. Throws Fault when there
/// is none, or when it is compressed otherwise than by LZ4 (nvcc --compress-mode=speed).
std::string ptx_of(const void* wrapper);

/// What an LZ4 block holds, `bytes` long. Throws Fault when the block is damaged.
std::string lz4_text(std::span<const std::byte> block, std::size_t bytes);

}  // namespace triptych::ptx
