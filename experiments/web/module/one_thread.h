// The mutex that the standard library for WebAssembly without threads leaves out: with one thread
// nobody waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __cplusplus
#include <mutex>

namespace std {

struct mutex {
  void lock() {}
  void unlock() {}
};

}  // namespace std
#endif
