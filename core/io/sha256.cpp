// SPDX-License-Identifier: Apache-2.0
#include "core/io/sha256.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <vector>

namespace triptych {
namespace {

constexpr std::int64_t kPart = 1 << 20;

void require(int result) {
  if (result != 1) throw Error("OpenSSL cannot compute SHA-256; is its default provider there?");
}

struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, ContextDeleter> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context != nullptr);
  require(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned length = 0;
  require(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length));
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::string sha256_of(const InputFile& file) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kPart, file.size())));
  Sha256 digest;
  for (std::int64_t offset = 0; offset < file.size(); offset += kPart) {
    const auto count = static_cast<std::size_t>(std::min(kPart, file.size() - offset));
    const auto part = std::span(buffer).first(count);
    file.read(offset, part);
    digest.update(part);
  }
  return digest.finish();
}

}  // namespace triptych
