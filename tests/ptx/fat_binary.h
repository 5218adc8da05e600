// Contents of an object file for the CUDA runtime, by nvcc: code of several kinds in one block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace triptych::ptx {

/// The PTX text behind the argument of nvcc's code for __cudaRegisterFatBinary. Throws Fault when
/// there is none, or when it is compressed in another way than nvcc does by default.
std::string ptx_of(const void* wrapper);

}  // namespace triptych::ptx
