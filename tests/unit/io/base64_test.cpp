// Text of bytes as RFC 4648 has it, by its own examples.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/base64.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(Base64, is_that_of_rfc_4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, takes_every_byte) {
  EXPECT_EQ(base64(std::string_view("\0\xff\xfe\x80", 4)), "AP/+gA==");
  EXPECT_EQ(base64(std::string(300, '\xff')), std::string(400, '/'));
}

}  // namespace
}  // namespace triptych
