// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/content_policy.h"

#include <fmt/format.h>

#include <span>

#include "core/io/base64.h"
#include "core/io/sha256.h"

namespace triptych::page {
namespace {

/// The digest as CSP writes it: base64 of its bytes.
std::string digest_of(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  const auto digits = hash.finish();
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return base64(bytes);
}

}  // namespace

std::string content_policy(std::string_view script, WebAssembly webassembly) {
  return fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'sha256-{}'{}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
      "'none'\">\n",
      digest_of(script), webassembly == WebAssembly::Allowed ? " 'wasm-unsafe-eval'" : "");
}

}  // namespace triptych::page
