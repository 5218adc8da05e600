// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_target.h"

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>

#include "core/io/temporary_folder.h"

namespace triptych::fuzz {
namespace {

void put(const std::filesystem::path& path, const char* data, std::size_t size) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(data, static_cast<std::streamsize>(size));
}

}  // namespace

const std::filesystem::path& file_of(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder("fuzz");
  static const auto path = folder.path() / "input";
  put(path, reinterpret_cast<const char*>(data), size);  // NOLINT: bytes are characters here
  return path;
}

void require(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "not kept: {}\n", what);
  std::abort();
}

}  // namespace triptych::fuzz

/// With TRIPTYCH_FUZZ_SEEDS=FOLDER writes the target's seeds there instead of fuzzing.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("TRIPTYCH_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const auto& seed : triptych::fuzz::seeds()) {
    const auto path = std::filesystem::path(folder) / fmt::format("seed-{:03}", number++);
    triptych::fuzz::put(path, seed.data(), seed.size());
  }
  std::exit(0);
}
