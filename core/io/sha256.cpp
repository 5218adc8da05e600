// SPDX-License-Identifier: Apache-2.0
#include "core/io/sha256.h"

#include "core/io/message_digest.h"

namespace triptych {

struct Sha256::State {
  MessageDigest digest{"SHA256"};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) { state_->digest.update(bytes); }

std::string Sha256::finish() { return state_->digest.finish(); }

std::string sha256_of(const InputFile& file) {
  MessageDigest digest("SHA256");
  digest.update(file);
  return digest.finish();
}

}  // namespace triptych
