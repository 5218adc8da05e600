// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/plain/watch.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "backends/cuda/plain/late_copies.h"
#include "backends/cuda/plain/signals.h"

namespace triptych::cuda::plain {
namespace {

using emulation::Access;
using emulation::Block;
using emulation::KnownCode;
using emulation::KnownSite;
using emulation::Location;
using emulation::Recorder;
using emulation::Space;

constexpr std::uintptr_t kPage = 4096, kFirstPage = kPage;
/// A GPU has memory at least as far around an array.
constexpr std::uintptr_t kGpuPage = std::uintptr_t{2} << 20;
/// Bytes that an int can lead astray.
constexpr std::uintptr_t kNear = std::uintptr_t{1} << 34;

const TextureTable kNoTextures;
constinit thread_local std::byte* shared_memory = nullptr;  ///< of this thread of the processor

/// The texture that the running block read last.
struct KnownTexture {
  std::uint64_t object = 0;
  const Texture* texture = nullptr;
};
constinit thread_local KnownTexture known_texture;

Access access_of(Touch how) {
  switch (how) {
    case Touch::Load:
    case Touch::VolatileLoad:
      return Access::Load;
    case Touch::Store:
    case Touch::VolatileStore:
      return Access::Store;
    default:
      return Access::Atomic;
  }
}

emulation::Manner manner_of(Touch how) {
  using emulation::Strength;
  const auto access = access_of(how);
  const bool is_plain = how == Touch::Load || how == Touch::Store;
  const auto strength = is_plain                   ? Strength::Plain
                        : access == Access::Atomic ? Strength::Atomic
                                                   : Strength::Volatile;
  return {access, strength, access != Access::Load && how != Touch::AtomicRead};
}

const char* verb(Touch how) {
  const auto access = access_of(how);
  return access == Access::Load ? "reads" : access == Access::Store ? "writes" : "changes";
}

void record(Space space, Touch how, const void* address, std::size_t bytes, const Location& where,
            KnownSite& site) {
  const auto size = static_cast<unsigned>(bytes);
  if (how == Touch::AtomicWrite) return Recorder::current().written(space, address, size, where);
  Recorder::current().access(space, manner_of(how), address, size, where, site);
}

const Variable* variable_at(std::span<const Variable> variables, std::uint64_t address) {
  const auto found = std::ranges::find_if(variables, [&](const Variable& variable) {
    return address - variable.begin < variable.bytes;
  });
  return found == variables.end() ? nullptr : &*found;
}

}  // namespace

constinit thread_local const Watch* current_watch = nullptr;

Watch::Watch(const KernelLibrary& library, std::span<const DeviceArray> arrays,
             std::size_t dynamic_bytes, Explanation explain, const TextureTable* textures,
             DeviceHeap* heap)
    : library_(library),
      arrays_(arrays),
      dynamic_bytes_(dynamic_bytes),
      used_(library.shared_variables().size()),
      explain_(std::move(explain)),
      textures_(textures == nullptr ? &kNoTextures : textures),
      heap_(heap) {
  content_of_.reserve(arrays.size());
  for (const auto& array : arrays) {
    auto* content = array.content;
    if (content == nullptr && array.is_undefined) {
      contents_.push_back(std::make_unique<ArrayContent>(array.bytes, array.element_bytes));
      content = contents_.back().get();
    }
    content_of_.push_back(content);
  }
}

void Watch::enter() const {
  emulation::runs_kernel = false;  // its library reports its pieces by itself
  forget_late_copies();
  // An earlier thread of the block has done the rest. Where a block begins, its shared memory is
  // the emulator's own.
  if (current_watch == this && Block::current().shared().data() == shared_memory) return;
  current_watch = this;
  known_texture = {};
  shared_memory = library_.shared_memory();
  Block::current().lay_shared({shared_memory, library_.fixed_shared_bytes() + dynamic_bytes_});
  Block::current().describe_by([](std::uintptr_t address) { return current_watch->name(address); });
  expect_signals();
}

std::string Watch::name(std::uintptr_t address) const {
  for (const auto& array : arrays_) {
    const auto offset = address - reinterpret_cast<std::uintptr_t>(array.data);
    if (offset < array.bytes) {
      return array.element_bytes == 0
                 ? fmt::format("byte {} of {}", offset, array.name)
                 : fmt::format("element {} of {}", offset / array.element_bytes, array.name);
    }
  }
  const auto offset = address - reinterpret_cast<std::uintptr_t>(shared_memory);
  if (offset >= library_.fixed_shared_bytes() &&
      offset < library_.fixed_shared_bytes() + kMostDynamicBytes) {
    return fmt::format("byte {} of the launch's shared memory",
                       offset - library_.fixed_shared_bytes());
  }
  if (const auto* variable = variable_at(library_.shared_variables(), offset)) {
    return fmt::format("byte {} of the shared variable {}", offset - variable->begin,
                       variable->name);
  }
  const auto* variable = variable_at(library_.global_variables(), address);
  return variable == nullptr ? "" : "the variable " + variable->name;
}

std::size_t Watch::shared_bytes_used() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) bytes += library_.shared_variables()[i].bytes;
  }
  return bytes + dynamic_bytes_;
}

void Watch::access(Touch how, std::uintptr_t address, std::size_t bytes,
                   const Location& where) const {
  thread_local std::size_t last_array = 0;
  KnownCode code = {.code = {}, .site = {}, .array = last_array};
  access(how, address, bytes, where, code);
  last_array = code.array;
}

void Watch::access(Touch how, std::uintptr_t address, std::size_t bytes, const Location& where,
                   KnownCode& code) const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the compiler's words
  const auto* pointer = reinterpret_cast<const void*>(address);
  const auto inside = [&](std::uintptr_t begin, std::size_t size) {
    return address - begin < size && bytes <= size - (address - begin);
  };
  const auto misaligned = [&] {
    if ((address & (bytes - 1)) == 0) return;  // bytes are a power of two
    Block::current().fail(FaultKind::Misaligned, where,
                          fmt::format("{} {} bytes at once, at an address that is no multiple of "
                                      "{}",
                                      verb(how), bytes, bytes));
  };
  const auto offset = address - reinterpret_cast<std::uintptr_t>(shared_memory);
  if (offset < library_.fixed_shared_bytes() + kMostDynamicBytes) {
    misaligned();
    if (!check_shared(how, offset, bytes, where)) return;
    return record(Space::Shared, how, pointer, bytes, where, code.site);
  }
  if (const auto* array = array_at(address, bytes, code.array)) {
    misaligned();
    record(Space::Global, how, pointer, bytes, where, code.site);
    return note_content(how, *array, address, bytes, where);
  }
  if (heap_ != nullptr && heap_->contains(address)) {
    misaligned();
    return access_heap(how, address, bytes, where);
  }
  if (const auto* variable = variable_at(library_.global_variables(), address);
      variable != nullptr && inside(variable->begin, variable->bytes)) {
    misaligned();
    return record(Space::Global, how, pointer, bytes, where, code.site);
  }
  const auto* variable = variable_at(library_.constant_variables(), address);
  const bool constant = variable != nullptr || library_.is_read_only(address);
  if (constant && access_of(how) == Access::Load) {
    if (variable != nullptr) record(Space::Constant, how, pointer, bytes, where, code.site);
    return;
  }
  if (constant) {
    Block::current().fail(FaultKind::OutOfBounds, where, "writes to constant memory");
  }
  touch_elsewhere(how, address, bytes, where);
}

/// The array that contains these bytes. Most accesses go to the array `last` of the one before.
const DeviceArray* Watch::array_at(std::uintptr_t address, std::size_t bytes,
                                   std::size_t& last) const {
  const auto contains = [&](const DeviceArray& array) {
    const auto offset = address - reinterpret_cast<std::uintptr_t>(array.data);
    return offset < array.bytes && bytes <= array.bytes - offset;
  };
  if (last < arrays_.size() && contains(arrays_[last])) return &arrays_[last];
  const auto found = std::ranges::find_if(arrays_, contains);
  if (found == arrays_.end()) return nullptr;
  last = static_cast<std::size_t>(found - arrays_.begin());
  return &*found;
}

/// An atomic operation reads the value that it changes.
void Watch::note_content(Touch how, const DeviceArray& array, std::uintptr_t address,
                         std::size_t bytes, const Location& where) const {
  const auto access = access_of(how);
  if (access != Access::Load && array.is_stored != nullptr) {
    array.is_stored->store(true, std::memory_order_relaxed);
  }
  auto* content = content_of_[static_cast<std::size_t>(&array - arrays_.data())];
  if (content == nullptr) return;
  const auto offset = address - reinterpret_cast<std::uintptr_t>(array.data);
  if (access == Access::Store) return content->write(offset, bytes);
  const auto undefined = content->undefined_in(offset, bytes);
  if (!undefined) return;
  const auto element = array.element_bytes == 0 ? bytes : array.element_bytes;
  const auto* remedy =
      array.content == nullptr
          ? "a new array is undefined; =0, =count or =random behind its sizes give it numbers"
          : "new memory is undefined; copy numbers to it, or cudaMemset it";
  Block::current().suspect(FaultKind::Uninitialised, where,
                           fmt::format("{} element {} of {}, which nothing has written: {}",
                                       verb(how), *undefined / element, array.name, remedy));
}

void Watch::access_heap(Touch how, std::uintptr_t address, std::size_t bytes,
                        const Location& where) const {
  auto piece = heap_->find(address);
  if (piece == nullptr || bytes > piece->bytes - (address - piece->begin)) {
    Block::current().fail(
        FaultKind::OutOfBounds, where,
        fmt::format("{} {} bytes outside of the memory that kernels allocated", verb(how), bytes));
  }
  if (piece->is_free) {
    Block::current().fail(FaultKind::OutOfBounds, where,
                          fmt::format("{} byte {} of {} bytes that a kernel allocated and freed",
                                      verb(how), address - piece->begin, piece->bytes));
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the compiler's words
  const auto* pointer = reinterpret_cast<const void*>(address);
  KnownSite site;
  record(Space::Global, how, pointer, bytes, where, site);
  const auto offset = address - piece->begin;
  if (access_of(how) == Access::Store) return piece->content.write(offset, bytes);
  if (!piece->content.undefined_in(offset, bytes)) return;
  Block::current().suspect(
      FaultKind::Uninitialised, where,
      fmt::format("{} byte {} of {} bytes that a kernel allocated, which nothing has written",
                  verb(how), offset, piece->bytes));
}

void* Watch::allocate(std::size_t bytes, const Location& where) const {
  if (heap_ != nullptr) return heap_->allocate(bytes);
  Block::current().fail(FaultKind::Assertion, where,
                        "the kernel allocates memory, which is not emulated without a main: give "
                        "it an array");
}

void Watch::release(void* memory, const Location& where) const {
  if (memory == nullptr || (heap_ != nullptr && heap_->release(memory))) return;
  Block::current().fail(FaultKind::Assertion, where,
                        "the kernel frees memory that no kernel allocated, or that was freed");
}

/// A read can continue with some value, a write cannot.
void Watch::out_of_bounds(Touch how, const Location& where, std::string&& what) {
  Block& block = Block::current();
  if (access_of(how) != Access::Load) block.fail(FaultKind::OutOfBounds, where, std::move(what));
  block.fault(FaultKind::OutOfBounds, where, std::move(what));
}

/// False for a read outside that was noted.
bool Watch::check_shared(Touch how, std::uint64_t offset, std::size_t bytes,
                         const Location& where) const {
  const auto fixed = library_.fixed_shared_bytes();
  const auto variables = library_.shared_variables();
  if (offset >= fixed) {
    if (offset + bytes > fixed + dynamic_bytes_) {
      out_of_bounds(
          how, where,
          fmt::format("{} bytes {} to {} of the launch's {} bytes of shared memory{}", verb(how),
                      offset - fixed, offset - fixed + bytes - 1, dynamic_bytes_,
                      dynamic_bytes_ == 0 ? "; give them with the option shared" : ""));
      return false;
    }
  } else {
    const auto* variable = variable_at(variables, offset);
    if (variable == nullptr || offset + bytes > variable->begin + variable->bytes) {
      out_of_bounds(how, where,
                    fmt::format("{} shared memory at byte {}, which is of none of its arrays",
                                verb(how), offset));
      return false;
    }
    used_[static_cast<std::size_t>(variable - variables.data())].store(true,
                                                                       std::memory_order_relaxed);
  }
  return true;
}

void Watch::read_texture(const TextureRead& read, std::uint32_t* channels,
                         const Location& where) const {
  if (known_texture.texture == nullptr || known_texture.object != read.object) {
    const auto found = textures_->textures.find(read.object);
    if (found == textures_->textures.end()) {
      Block::current().fail(FaultKind::OutOfBounds, where,
                            "reads a texture that was not created, or was destroyed");
    }
    known_texture = {read.object, &found->second};
  }
  const auto& texture = *known_texture.texture;
  const bool is_observed = emulation::current_recorder != nullptr;
  if (!is_observed && read_single(texture, read, channels)) return;
  if (auto wrong = mistake_in(texture, read); !wrong.empty()) {
    Block::current().fail(FaultKind::OutOfBounds, where, std::move(wrong));
  }
  const auto taps = taps_of(texture, read);
  for (unsigned i = 0; i < taps.count; ++i) {
    if (taps.taps[i].texel == nullptr || !is_observed) continue;
    access(Touch::Load, reinterpret_cast<std::uintptr_t>(taps.taps[i].texel),
           texture.texels.texel_bytes(), where);
  }
  std::ranges::copy(mix(texture, taps), channels);
}

std::byte* Watch::find_in_surface(const SurfaceAccess& access, const Location& where) const {
  const auto found = textures_->surfaces.find(access.object);
  if (found == textures_->surfaces.end()) {
    Block::current().fail(FaultKind::OutOfBounds, where,
                          "uses a surface that was not created, or was destroyed");
  }
  if (auto wrong = mistake_in(found->second, access); !wrong.empty()) {
    Block::current().fail(FaultKind::OutOfBounds, where, std::move(wrong));
  }
  return bytes_of(found->second, access);
}

/// The array with a begin or end no further away than its length, or than a kilobyte.
const DeviceArray* Watch::nearest(std::uintptr_t address) const {
  const DeviceArray* best = nullptr;
  std::uintptr_t least = 0;
  for (const auto& array : arrays_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(array.data);
    const auto distance = address < begin ? begin - address : address - begin;
    if (best == nullptr || distance < least) {
      best = &array;
      least = distance;
    }
  }
  return least < kNear ? best : nullptr;
}

/// Gives a read outside of the arrays zeros where a GPU would find its own memory: near an array,
/// but not in another one. False: it is too far away.
bool Watch::make_readable(std::uintptr_t address, std::size_t bytes) const {
  const auto* array = nearest(address);
  if (array == nullptr || (explain_ && !explain_(address).empty())) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(array->data), end = begin + array->bytes;
  const auto distance = address < begin ? begin - address : address - std::min(address, end);
  if (distance >= kGpuPage) return false;
  for (auto page = address / kPage * kPage; page < address + bytes; page += kPage) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the address of a page
    (void)mmap(reinterpret_cast<void*>(page), kPage, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  }
  return true;
}

void Watch::touch_elsewhere(Touch how, std::uintptr_t address, std::size_t bytes,
                            const Location& where) const {
  Block& block = Block::current();
  const bool can_continue =
      block.keeps_going() && access_of(how) == Access::Load && make_readable(address, bytes);
  if (!can_continue) {
    block.fail(FaultKind::OutOfBounds, where, describe_elsewhere(how, address, bytes));
  }
  block.fault(FaultKind::OutOfBounds, where, describe_elsewhere(how, address, bytes));
}

std::string Watch::describe_elsewhere(Touch how, std::uintptr_t address, std::size_t bytes) const {
  std::string what = explain_ ? explain_(address) : "";
  if (!what.empty()) {
    what = fmt::format("{} {} bytes of {}", verb(how), bytes, what);
  } else if (address < kFirstPage) {
    what = fmt::format("{} {} bytes through a null pointer (address {:#x})", verb(how), bytes,
                       address);
  } else if (const auto* array = nearest(address); array != nullptr) {
    const auto begin = reinterpret_cast<std::uintptr_t>(array->data);
    const auto size = array->element_bytes == 0 ? bytes : array->element_bytes;
    const auto element = static_cast<std::int64_t>(size);
    const auto distance = static_cast<std::int64_t>(address - begin);
    const auto index = distance >= 0 ? distance / element : -((element - 1 - distance) / element);
    what = fmt::format("{} element {} of {}, which has {}", verb(how), index, array->name,
                       array->bytes / size);
  } else {
    what = fmt::format("{} {} bytes at address {:#x}, where none of the kernel's arrays is",
                       verb(how), bytes, address);
  }
  return what;
}

const KernelLibrary* watched_library() {
  return current_watch == nullptr ? nullptr : &current_watch->library();
}

}  // namespace triptych::cuda::plain
