// The Content-Security-Policy of the pages. A browser runs the page's own script only,
// loads nothing, and sends nothing, even if the page contains hostile text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace triptych::page {

enum class WebAssembly : std::uint8_t { Refused, Allowed };

/// The <meta> element for the head. `script` is the text between <script> and </script>.
/// It allows style attributes, for bars and colours, and pictures in data: addresses.
std::string content_policy(std::string_view script, WebAssembly webassembly = WebAssembly::Refused);

}  // namespace triptych::page
