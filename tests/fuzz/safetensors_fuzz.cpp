// Weights: any bytes are refused, or read to tensors that take no more memory than the file has
// bytes.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/safetensors.h"

#include <cstring>

#include "core/base/error.h"
#include "core/io/temporary_folder.h"
#include "tests/fuzz/fuzz_target.h"

namespace triptych::fuzz {

std::vector<std::string> seeds() {
  const TemporaryFolder folder("seeds");
  const auto path = folder.path() / "weights.safetensors";
  std::vector<std::string> list;
  TensorMap tensors;
  for (const auto dtype : {DType::F32, DType::I64, DType::U8, DType::Bool, DType::BF16}) {
    tensors.emplace("t" + std::to_string(list.size()), Tensor(TensorSpec{dtype, Shape{2, 3}}));
    save_safetensors(path, tensors, {{"made", "here"}});
    list.push_back(read_file(path));
  }
  save_safetensors(path, {});
  list.push_back(read_file(path));
  return list;
}

}  // namespace triptych::fuzz

/// Header lengths fit their headers half of the time, or hardly any input gets past them.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  std::uint64_t length = 0;
  if (seed % 2 == 0 || size < sizeof length) return size;
  const auto* end = static_cast<const std::uint8_t*>(std::memchr(data + 8, '\0', size - 8));
  const auto* brace = end == nullptr ? data + size : end;
  while (brace > data + 8 && brace[-1] != '}' && brace[-1] != ' ') --brace;
  length = static_cast<std::uint64_t>(brace - data - 8);
  std::memcpy(data, &length, sizeof length);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace triptych;  // NOLINT: a function outside of the namespace
  try {
    const auto file = load_safetensors(fuzz::file_of(data, size), 1 << 20);
    std::size_t bytes = 0;
    for (const auto& [name, tensor] : file.tensors) bytes += tensor.bytes().size();
    fuzz::require(bytes <= size, "tensors lie within the file");
  } catch (const Error&) {
  }
  return 0;
}
