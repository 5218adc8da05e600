// SPDX-License-Identifier: Apache-2.0
#include "tests/mutation/switch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace triptych::mutation {
namespace {

constexpr int kMostConditions = 1 << 15;

int wanted_mutant() {
  const char* wanted = std::getenv("TRIPTYCH_MUTANT");
  return wanted == nullptr ? -1 : std::atoi(wanted);
}

unsigned char* map_conditions() {
  const char* path = std::getenv("TRIPTYCH_CONDITIONS");
  if (path == nullptr) return nullptr;
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return nullptr;
  void* bytes = MAP_FAILED;
  if (ftruncate(file, kMostConditions) == 0) {
    bytes = mmap(nullptr, kMostConditions, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return bytes == MAP_FAILED ? nullptr : static_cast<unsigned char*>(bytes);
}

}  // namespace

const int active = wanted_mutant();
unsigned char* const seen = map_conditions();

}  // namespace triptych::mutation
