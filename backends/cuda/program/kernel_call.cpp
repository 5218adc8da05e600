// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/kernel_call.h"

#include <alloca.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/base/error.h"

extern "C" void triptych_call_with(const void* registers, const void* function, const void* stack,
                                   std::size_t stack_bytes);

#if defined(__x86_64__)
// Copies the stack's part, loads the registers, calls the function.
__asm__(R"(
  .text
  .type triptych_call_with, @function
triptych_call_with:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq %rcx, %rsp
  andq $-64, %rsp
  movq %rdi, %r10
  movq %rsi, %r11
  jrcxz 1f
  movq %rdx, %rsi
  movq %rsp, %rdi
  rep movsb
1:
  movups 48(%r10), %xmm0
  movups 64(%r10), %xmm1
  movups 80(%r10), %xmm2
  movups 96(%r10), %xmm3
  movups 112(%r10), %xmm4
  movups 128(%r10), %xmm5
  movups 144(%r10), %xmm6
  movups 160(%r10), %xmm7
  movq 0(%r10), %rdi
  movq 8(%r10), %rsi
  movq 16(%r10), %rdx
  movq 24(%r10), %rcx
  movq 32(%r10), %r8
  movq 40(%r10), %r9
  movl $8, %eax
  call *%r11
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size triptych_call_with, .-triptych_call_with
)");
#else
void triptych_call_with(const void*, const void*, const void*, std::size_t) {
  throw triptych::DeviceError("whole CUDA programs run on x86-64 processors only");
}
#endif

namespace triptych::cuda::program {
namespace {

constexpr std::size_t kRegisterBytes = sizeof(ArgumentRegisters);
constexpr std::size_t kStackAlignment = 64;
/// Registers, then the stack: parameters, and as much again for their alignment.
constexpr std::size_t probed_bytes(std::size_t parameter_bytes) {
  return kRegisterBytes + 2 * parameter_bytes;
}
constexpr std::size_t kMostProbedBytes = probed_bytes(kMostParameterBytes);

/// A parameter as one call of the probed function showed it.
struct Shown {
  std::vector<std::byte> bytes;
  std::size_t size = 0, offset = 0;
  bool by_address = false;
};

thread_local std::vector<Shown>* shown = nullptr;

/// Overwrites the stack below, so that what a call leaves there is no byte of an earlier call.
[[gnu::noinline]] void wipe_stack() {
  std::array<std::byte, kMostProbedBytes + (std::size_t{32} << 10)> below;
  below.fill(std::byte{0});
  asm volatile("" : : "r"(below.data()) : "memory");
}

/// One call with `bytes` of registers and stack: all bytes of a place are ones where bit `bit` of
/// its number, or of its inverse, is set.
std::vector<Shown> show(const void* stub, std::size_t bytes, unsigned bit, bool inverse) {
  std::vector<std::byte> pattern(bytes);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool set = ((i + 1) >> bit & 1) != 0;
    pattern[i] = set != inverse ? std::byte{0xFF} : std::byte{0};
  }
  std::vector<Shown> parameters;
  shown = &parameters;
  wipe_stack();
  triptych_call_with(pattern.data(), stub, pattern.data() + kRegisterBytes,
                     pattern.size() - kRegisterBytes);
  shown = nullptr;
  return parameters;
}

/// Numbers of places under construction: bits that are known, and whether they were all seen to
/// follow the pattern.
struct Traced {
  std::vector<std::size_t> number;
  std::vector<bool> follows;
};

void trace(Traced& traced, const Shown& straight, const Shown& inverse, unsigned bit) {
  for (std::size_t i = 0; i < straight.bytes.size(); ++i) {
    // A bool keeps only its lowest bit.
    const auto a = std::to_integer<unsigned>(straight.bytes[i]) & 1;
    const auto b = std::to_integer<unsigned>(inverse.bytes[i]) & 1;
    if (a == b) traced.follows[i] = false;
    traced.number[i] |= static_cast<std::size_t>(a) << bit;
  }
}

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Bytes of registers and stack that hold the parameters of this function.
std::size_t probed_bytes_of(const void* stub) {
  std::size_t end = 0;
  for (const auto& each : show(stub, kMostProbedBytes, 0, false)) {
    end = std::max(end, each.offset + each.size);
  }
  return probed_bytes(std::clamp(round_up(end, kStackAlignment), kStackAlignment,
                                 round_up(kMostParameterBytes, kStackAlignment)));
}

}  // namespace

bool is_probing() { return shown != nullptr; }

void probe_argument(const void* value, std::size_t bytes, std::size_t offset) {
  // A value lies in the stack that is in use. Everything else is a pattern that was passed as the
  // address of a copy.
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto at = reinterpret_cast<std::uintptr_t>(value);
  constexpr std::uintptr_t near = std::uintptr_t{1} << 18;
  Shown parameter = {{}, bytes, offset, at - here >= near};
  parameter.bytes.resize(parameter.by_address ? sizeof(value) : bytes);
  std::memcpy(parameter.bytes.data(), parameter.by_address ? &value : value,
              parameter.bytes.size());
  shown->push_back(std::move(parameter));
}

ParameterPlaces probe_parameters(const void* stub) {
  ParameterPlaces places;
  std::vector<Traced> traced;
  const auto probed = probed_bytes_of(stub);
  // Numbers of places are written bit by bit. 0 and the largest one are not used.
  const auto bits = static_cast<unsigned>(std::bit_width(probed + 2));
  for (unsigned bit = 0; bit < bits; ++bit) {
    const auto straight = show(stub, probed, bit, false), inverse = show(stub, probed, bit, true);
    if (bit == 0) {
      for (const auto& each : straight) {
        const auto count = each.bytes.size();
        places.push_back({each.size, each.offset, each.by_address, {}});
        traced.push_back({std::vector<std::size_t>(count), std::vector<bool>(count, true)});
      }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      trace(traced[i], straight.at(i), inverse.at(i), bit);
    }
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t byte = 0; byte < traced[i].number.size(); ++byte) {
      const auto number = traced[i].number[byte];
      const bool known = traced[i].follows[byte] && number >= 1 && number <= probed;
      places[i].byte_at.push_back(known ? number - 1 : kPadding);
    }
  }
  return places;
}

KernelCall::KernelCall(const ParameterPlaces& places, std::span<const void* const> values) {
  std::vector<std::byte> image(kRegisterBytes);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& place = places[i];
    const auto* value = static_cast<const std::byte*>(values[i]);
    if (place.by_address) {
      by_address_.push_back({place.byte_at[0], copies_.size()});
      copies_.insert(copies_.end(), value, value + place.bytes);
      copies_.resize(round_up(copies_.size(), kStackAlignment));
    }
    for (std::size_t byte = 0; byte < place.byte_at.size(); ++byte) {
      const auto at = place.byte_at[byte];
      if (at == kPadding) continue;
      if (at >= image.size()) image.resize(kRegisterBytes + round_up(at + 1 - kRegisterBytes, 64));
      if (!place.by_address) image[at] = value[byte];
    }
  }
  std::memcpy(&registers_, image.data(), kRegisterBytes);
  stack_.assign(image.begin() + kRegisterBytes, image.end());
}

void KernelCall::run(const void* kernel) const {
  if (by_address_.empty()) {
    return triptych_call_with(&registers_, kernel, stack_.data(), stack_.size());
  }
  // The copies lie on the thread's own stack, as a caller's would.
  auto* memory = static_cast<std::byte*>(alloca(copies_.size() + kStackAlignment));
  memory += -reinterpret_cast<std::uintptr_t>(memory) % kStackAlignment;
  std::memcpy(memory, copies_.data(), copies_.size());
  // The call copies this before another thread of the kernel can run.
  thread_local std::vector<std::byte> image;
  image.resize(kRegisterBytes + stack_.size());
  std::memcpy(image.data(), &registers_, kRegisterBytes);
  std::ranges::copy(stack_, image.begin() + kRegisterBytes);
  for (const auto& [place, copy] : by_address_) {
    const auto* address = memory + copy;
    std::memcpy(image.data() + place, static_cast<const void*>(&address), sizeof(address));
  }
  triptych_call_with(image.data(), kernel, image.data() + kRegisterBytes, stack_.size());
}

}  // namespace triptych::cuda::program
