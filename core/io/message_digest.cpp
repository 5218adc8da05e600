// SPDX-License-Identifier: Apache-2.0
#include "core/io/message_digest.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <vector>

namespace triptych {
namespace {

constexpr std::int64_t kPart = 1 << 20;

struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

struct MessageDigest::State {
  std::unique_ptr<EVP_MD_CTX, ContextDeleter> context{EVP_MD_CTX_new()};
};

MessageDigest::MessageDigest(std::string algorithm)
    : algorithm_(std::move(algorithm)), state_(std::make_unique<State>()) {
  const auto* method = EVP_get_digestbyname(algorithm_.c_str());
  require(state_->context != nullptr && method != nullptr);
  require(EVP_DigestInit_ex(state_->context.get(), method, nullptr));
}

MessageDigest::~MessageDigest() = default;

void MessageDigest::require(int result) const {
  if (result == 1) return;
  throw Error(
      fmt::format("OpenSSL cannot compute {}; load OpenSSL's default provider", algorithm_));
}

void MessageDigest::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

void MessageDigest::update(const InputFile& file) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kPart, file.size())));
  for (std::int64_t offset = 0; offset < file.size(); offset += kPart) {
    const auto count = static_cast<std::size_t>(std::min(kPart, file.size() - offset));
    const auto part = std::span(buffer).first(count);
    file.read(offset, part);
    update(part);
  }
}

std::string MessageDigest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned length = 0;
  require(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length));
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace triptych
