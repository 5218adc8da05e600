// NumPy's arrays: any bytes are refused, or read and written again to the same array.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/error.h"
#include "core/io/npy.h"
#include "tests/fuzz/fuzz_target.h"

namespace triptych::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> list;
  for (const auto dtype : {DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I8,
                           DType::U8, DType::Bool}) {
    try {
      list.push_back(encode_npy(Tensor(TensorSpec{dtype, Shape{2, 3}})));
    } catch (const Error&) {  // NumPy has no such type
    }
  }
  list.push_back(encode_npy(Tensor(TensorSpec{DType::F32, Shape{}})));
  list.push_back(encode_npy(Tensor(TensorSpec{DType::F32, Shape{0, 4}})));
  list.push_back(encode_npy_widened(Tensor(TensorSpec{DType::F32, Shape{3}})));
  return list;
}

}  // namespace triptych::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triptych;  // NOLINT: a function outside of the namespace
  constexpr std::int64_t kMemory = 1 << 20;
  const auto& path = fuzz::file_of(data, size);
  try {
    load_npy_narrowed(path, kMemory);
  } catch (const Error&) {
  }
  try {
    const auto tensor = load_npy(path, kMemory);
    const auto text = encode_npy(tensor);
    const auto& again_path =
        fuzz::file_of(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());  // NOLINT
    const auto again = load_npy(again_path, kMemory);
    fuzz::require(again.spec() == tensor.spec(), "the array's type and shape");
    fuzz::require(std::ranges::equal(again.bytes(), tensor.bytes()), "the array's values");
  } catch (const Error&) {
  }
  return 0;
}
