// Functions that g++'s instrumentation calls (-fsanitize=thread, -fsanitize-coverage=trace-pc,
// -fsanitize=bounds-strict), and the words of language.h, passed on to the program. Compiled into
// every library of plain kernels, without instrumentation. The run-time libraries of the sanitizers
// are not linked.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/services.h"

// The assembler's macro `triptych_call_beside_vectors FUNCTION`: calls a function and keeps all
// vector registers, for code between any two instructions of a kernel. The caller has stored the
// other registers: rbx and those that a call changes.
#if defined(__x86_64__)
asm(R"(
    .macro triptych_call_beside_vectors function
    movq %rsp, %rbx
    andq $-32, %rsp
    subq $512, %rsp
    .set at, 0
    .irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovaps %ymm\register, at(%rsp)
    .set at, at + 32
    .endr
    cld
    call \function
    .set at, 0
    .irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovaps at(%rsp), %ymm\register
    .set at, at + 32
    .endr
    movq %rbx, %rsp
    .endm
)");
#endif

namespace triptych::cuda::plain {

const Services* services __attribute__((visibility("hidden"))) = nullptr;

namespace {

/// Nobody looks on while the library is being opened.
inline void touch(Touch how, const void* address, std::size_t bytes, const void* pc) {
  if (services != nullptr) services->touch(how, address, bytes, pc);
}

/// An access of a type with an alignment that may be smaller than its size.
inline void touch_pieces(Touch how, const void* address, std::size_t bytes, std::size_t most,
                         const void* pc) {
  if (services != nullptr) services->touch_pieces(how, address, bytes, most, pc);
}

/// An access of a number that may be less aligned than its type. The compilers of CUDA believe the
/// type, so it is one access. One at another address has a packed type, and takes a byte at a time.
inline void touch_number(Touch how, const void* address, std::size_t bytes, const void* pc) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
  touch_pieces(how, address, bytes, is_aligned ? bytes : 1, pc);
}

/// The alignment of a range: one of 8 or 16 bytes is a type with an alignment below 8.
constexpr std::size_t most_of_range(std::size_t bytes) {
  return bytes == 8 || bytes == 16 ? 4 : bytes == 4 ? 2 : 16;
}

}  // namespace
}  // namespace triptych::cuda::plain

namespace plain = triptych::cuda::plain;
namespace emulation = triptych::cuda::emulation;
using plain::services, plain::Touch;

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): the compiler's names.
extern "C" {

__attribute__((visibility("default"))) unsigned triptych_bind(const plain::Services* table) {
  services = table;
  return plain::kServicesVersion;
}

void __tsan_init() {}

#define TRIPTYCH_TOUCH(name, how, bytes) \
  void name(void* address) { plain::touch(how, address, bytes, __builtin_return_address(0)); }
// Accesses of a type that is less aligned than it is large, or may be.
#define TRIPTYCH_TYPE(name, how, bytes)                                           \
  void name(void* address) {                                                      \
    plain::touch_pieces(how, address, bytes, bytes, __builtin_return_address(0)); \
  }
#define TRIPTYCH_UNALIGNED(name, how, bytes)                               \
  void name(void* address) {                                               \
    plain::touch_number(how, address, bytes, __builtin_return_address(0)); \
  }
#define TRIPTYCH_SIZES(define, prefix, read, write)                                     \
  define(prefix##read##2, Touch::Load, 2) define(prefix##write##2, Touch::Store, 2)     \
      define(prefix##read##4, Touch::Load, 4) define(prefix##write##4, Touch::Store, 4) \
          define(prefix##read##8, Touch::Load, 8) define(prefix##write##8, Touch::Store, 8)
TRIPTYCH_TOUCH(__tsan_read1, Touch::Load, 1)
TRIPTYCH_TOUCH(__tsan_write1, Touch::Store, 1)
TRIPTYCH_SIZES(TRIPTYCH_TOUCH, __tsan_, read, write)
TRIPTYCH_TYPE(__tsan_read16, Touch::Load, 16)
TRIPTYCH_TYPE(__tsan_write16, Touch::Store, 16)
TRIPTYCH_SIZES(TRIPTYCH_UNALIGNED, __tsan_unaligned_, read, write)
TRIPTYCH_UNALIGNED(__tsan_unaligned_read16, Touch::Load, 16)
TRIPTYCH_UNALIGNED(__tsan_unaligned_write16, Touch::Store, 16)
#define TRIPTYCH_VOLATILE(bytes)                                          \
  TRIPTYCH_TOUCH(__tsan_volatile_read##bytes, Touch::VolatileLoad, bytes) \
  TRIPTYCH_TOUCH(__tsan_volatile_write##bytes, Touch::VolatileStore, bytes)
TRIPTYCH_VOLATILE(1)
TRIPTYCH_VOLATILE(2)
TRIPTYCH_VOLATILE(4)
TRIPTYCH_VOLATILE(8)
TRIPTYCH_VOLATILE(16)

// The pointer of an object to its virtual functions.
TRIPTYCH_TOUCH(__tsan_vptr_read, Touch::Load, 8)
void __tsan_vptr_update(void* address, void*) {
  plain::touch(Touch::Store, address, 8, __builtin_return_address(0));
}

void __tsan_read_range(void* address, std::size_t bytes) {
  plain::touch_pieces(Touch::Load, address, bytes, plain::most_of_range(bytes),
                      __builtin_return_address(0));
}
void __tsan_write_range(void* address, std::size_t bytes) {
  plain::touch_pieces(Touch::Store, address, bytes, plain::most_of_range(bytes),
                      __builtin_return_address(0));
}

void __sanitizer_cov_trace_pc() {
  if (services == nullptr) return;
  services->pass(__builtin_return_address(0), __builtin_frame_address(0),
                 __builtin_return_address(1));
}

void triptych_poll(const void* address) {
  if (services != nullptr) services->poll(address, __builtin_return_address(0));
}
std::uint32_t triptych_index(unsigned which) { return services->index(which); }

#if defined(__x86_64__)
/// Libraries for the debugger call triptych_line at the beginning of each line. It changes no
/// register and no flag.
void triptych_line_begins(const void* pc, const void* frame, const void* stack) {
  if (services == nullptr) return;
  services->line(pc, frame, stack, static_cast<const void* const*>(frame)[1]);
}
asm(R"(
    .text
    .globl triptych_line
    .hidden triptych_line
    .type triptych_line, @function
triptych_line:
    pushfq
    pushq %rax
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %rbx
    movq 88(%rsp), %rdi
    movq %rbp, %rsi
    leaq 96(%rsp), %rdx
    triptych_call_beside_vectors triptych_line_begins
    popq %rbx
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rax
    popfq
    ret
    .size triptych_line, .-triptych_line
)");
#endif

/// As libubsan has them.
struct SourceLocation {
  const char* file;
  unsigned line, column;
};
struct TypeDescriptor {
  unsigned short kind, info;
  char name[1];
};
struct OutOfBoundsData {
  SourceLocation where;
  const TypeDescriptor *array, *index;
};
void __ubsan_handle_out_of_bounds(OutOfBoundsData* data, std::uintptr_t index) {
  services->beyond(__builtin_return_address(0), data->array->name,
                   static_cast<std::int64_t>(index));
}
struct TypeMismatchData {
  SourceLocation where;
  const TypeDescriptor* type;
  unsigned char alignment_log2, kind;
};
/// clang calls this for an address that its type's alignment forbids. The access reports it.
void __ubsan_handle_type_mismatch_v1(TypeMismatchData* data, std::uintptr_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the compiler's words
  plain::touch(Touch::Load, reinterpret_cast<void*>(address),
               std::size_t{1} << data->alignment_log2, __builtin_return_address(0));
}
[[noreturn]] void __assert_fail(const char* condition, const char* file, unsigned line,
                                const char*) noexcept {
  services->fail(condition, emulation::Location(file, line, 1));
  __builtin_trap();
}

// Functions of the host that a GPU has not, or that are not emulated: they would end the program.
#define TRIPTYCH_REFUSED(name, result, what, ...)        \
  __attribute__((noreturn)) result name(__VA_ARGS__) {   \
    services->refuse(what, __builtin_return_address(0)); \
    __builtin_trap();                                    \
  }
TRIPTYCH_REFUSED(exit, void, "the kernel calls exit", int)
TRIPTYCH_REFUSED(_Exit, void, "the kernel calls _Exit", int)
TRIPTYCH_REFUSED(abort, void, "the kernel calls abort", void)
TRIPTYCH_REFUSED(__cxa_allocate_exception, void*, "the kernel throws an exception", std::size_t)

// malloc, new and delete in kernels. Each takes memory of the GPU's heap.
#define TRIPTYCH_ALLOCATES(name) \
  void* name(std::size_t bytes) { return services->allocate(bytes, __builtin_return_address(0)); }
#define TRIPTYCH_RELEASES(name, ...)                        \
  void name(void* memory __VA_OPT__(, ) __VA_ARGS__) {      \
    services->release(memory, __builtin_return_address(0)); \
  }
TRIPTYCH_ALLOCATES(malloc)
TRIPTYCH_ALLOCATES(_Znwm)
TRIPTYCH_ALLOCATES(_Znam)
TRIPTYCH_RELEASES(free)
TRIPTYCH_RELEASES(_ZdlPv)
TRIPTYCH_RELEASES(_ZdaPv)
TRIPTYCH_RELEASES(_ZdlPvm, std::size_t)
TRIPTYCH_RELEASES(_ZdaPvm, std::size_t)

}  // extern "C"
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace triptych::cuda::emulation {

void barrier(const Location& where) { services->barrier(where); }
bool exchange(std::uint32_t mask, std::uint64_t value, const Location& where, WarpWork work) {
  return services->exchange(mask, value, where, work);
}
std::uint64_t exchanged(std::uint32_t mask, unsigned lane, const Location& where) {
  return services->exchanged(mask, lane, where);
}
unsigned lane_index() { return services->lane_index(); }

}  // namespace triptych::cuda::emulation
