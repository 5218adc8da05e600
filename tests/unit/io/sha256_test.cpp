// SPDX-License-Identifier: Apache-2.0
#include "core/io/sha256.h"

#include <gtest/gtest.h>

#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

TEST(Sha256, equals_the_published_digests) {
  Sha256 nothing;
  EXPECT_EQ(nothing.finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 abc;
  for (const char letter : {'a', 'b', 'c'}) abc.update(std::as_bytes(std::span(&letter, 1)));
  EXPECT_EQ(abc.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, reads_files_of_every_size_around_its_buffer) {
  const test::TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, (1u << 20) - 1, 1u << 20, (1u << 20) + 1, 3u << 20}) {
    const std::string content(size, 'x');
    test::put_file(folder / "file", content);
    Sha256 whole;
    whole.update(std::as_bytes(std::span(content)));
    EXPECT_EQ(sha256_of(InputFile(folder / "file")), whole.finish()) << size;
  }
}

}  // namespace
}  // namespace triptych
