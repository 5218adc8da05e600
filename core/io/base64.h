// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych {

/// Bytes as text of 64 characters (RFC 4648), padded.
std::string base64(std::string_view bytes);

}  // namespace triptych
