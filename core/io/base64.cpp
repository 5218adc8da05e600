// SPDX-License-Identifier: Apache-2.0
#include "core/io/base64.h"

#include <openssl/evp.h>

#include <limits>

#include "core/base/error.h"

namespace triptych {

std::string base64(std::string_view bytes) {
  if (bytes.size() > std::numeric_limits<int>::max() / 2)
    throw InvalidArgument("base64 takes less than 1 GiB");
  std::string text((bytes.size() + 2) / 3 * 4, '\0');  // and behind it the 0 that OpenSSL writes
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return text;
}

}  // namespace triptych
