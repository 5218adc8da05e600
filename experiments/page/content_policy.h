// The Content-Security-Policy of the pages. A browser runs the one script that a page was written
// with, loads nothing, and sends nothing, whatever text of others stands in the page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace triptych::page {

enum class WebAssembly : std::uint8_t { Refused, Allowed };

/// The <meta> element for the head. `script` is all that stands between <script> and </script>.
/// Styles may stand in elements, for bars and colours are attributes; pictures are data: addresses.
std::string content_policy(std::string_view script, WebAssembly webassembly = WebAssembly::Refused);

}  // namespace triptych::page
