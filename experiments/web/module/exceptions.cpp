// The end of a `throw` where the standard library has no exceptions: an Error in JavaScript with
// the message. It ends the call. The instance is not to be used again.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

extern "C" {

__attribute__((import_module("triptych"), import_name("failed"))) void triptych_failed(
    const char* message, std::size_t length);

void* __cxa_allocate_exception(std::size_t bytes) noexcept { return std::malloc(bytes); }
void __cxa_free_exception(void* thrown) noexcept { std::free(thrown); }

/// Everything that is thrown here derives from std::exception, alone and first.
[[noreturn]] void __cxa_throw(void* thrown, std::type_info*, void (*)(void*)) {
  const char* message = static_cast<std::exception*>(thrown)->what();
  triptych_failed(message, std::strlen(message));
  std::abort();
}

[[noreturn]] void __cxa_rethrow() {
  triptych_failed("rethrown", 8);
  std::abort();
}
void* __cxa_begin_catch(void* thrown) noexcept { return thrown; }
void __cxa_end_catch() {}
}
