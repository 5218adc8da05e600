// The arrays of kernels/memory.h when every access is counted and checked. An index brings along
// its place in the source. Memory behind it is read and written through a Reference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

#include "backends/cuda/emulation/recorder.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

using emulation::Access;
using emulation::Location;
using emulation::Recorder;
using emulation::Space;

template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T values[kCount];
  T& operator[](int i) { return values[i]; }
  const T& operator[](int i) const { return values[i]; }
};

// The functions below report no pieces of code (kernel_pieces.cpp): a kernel calls them from many
// places, and a piece that several places share would join their ways.
struct Index {
  template <std::integral I>
  [[gnu::no_sanitize_coverage]] Index(
      I i, Location place = Location::current())  // NOLINT(google-explicit-constructor)
      : value(static_cast<std::int64_t>(i)), where(place) {}
  std::int64_t value;
  Location where;
};

template <class T, Space kSpace>
class Reference {
 public:
  using Value = std::remove_const_t<T>;

  [[gnu::no_sanitize_coverage]] Reference(T* at, const Location& where) : at_(at), where_(where) {}

  [[gnu::no_sanitize_coverage]] operator Value()
      const {  // NOLINT(google-explicit-constructor): reads like the element
    Recorder::current().access(kSpace, Recorder::plain(Access::Load), at_, sizeof(T), where_);
    return *at_;
  }
  [[gnu::no_sanitize_coverage]] const Reference& operator=(const Value& value) const {
    Recorder::current().access(kSpace, Recorder::plain(Access::Store), at_, sizeof(T), where_);
    *at_ = value;
    return *this;
  }
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): an element may be stored to itself
  [[gnu::no_sanitize_coverage]] const Reference& operator=(const Reference& other) const {
    return *this = Value(other);
  }
  Reference(const Reference&) = default;
  [[gnu::no_sanitize_coverage]] const Reference& operator+=(const Value& value) const {
    return *this = Value(*this) + value;
  }

 private:
  T* at_;
  Location where_;
};

template <class T>
class Global {
 public:
  Global() = default;
  [[gnu::no_sanitize_coverage]] Global(T* data, std::int64_t size) : data_(data), size_(size) {}

  [[gnu::no_sanitize_coverage]] Reference<T, Space::Global> operator[](Index i) const {
    return {checked(i, 1), i.where};
  }

  template <int kCount>
  [[gnu::no_sanitize_coverage]] auto load(Index i) const {
    using Elements = Vector<std::remove_const_t<T>, kCount>;
    return Elements(whole<const Elements>(i));
  }
  template <int kCount>
  [[gnu::no_sanitize_coverage]] void store(Index i, const Vector<T, kCount>& values) const {
    whole<Vector<T, kCount>>(i) = values;
  }
  const void* address() const { return data_; }
  [[gnu::no_sanitize_coverage]] Global from(Index i) const {
    return {data_ + i.value, size_ - i.value};
  }

 private:
  template <class Elements>
  [[gnu::no_sanitize_coverage]] Reference<Elements, Space::Global> whole(const Index& i) const {
    auto* at = checked(i, sizeof(Elements) / sizeof(T));
    if (reinterpret_cast<std::uintptr_t>(at) % sizeof(Elements) != 0) {
      emulation::Block::current().fail(FaultKind::OutOfBounds, i.where,
                                       "the address is no multiple of the vector's size");
    }
    return {reinterpret_cast<Elements*>(at), i.where};
  }
  [[gnu::no_sanitize_coverage]] T* checked(const Index& i, std::int64_t count) const {
    if (i.value < 0 || i.value + count > size_) {
      emulation::fail_out_of_bounds(i.value, size_, i.where);
    }
    return data_ + i.value;
  }

  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

template <class T, int kHeight, int kWidth = 1>
struct Shared {
  T data[kHeight * kWidth];

  [[gnu::no_sanitize_coverage]] Reference<T, Space::Shared> operator[](Index i) {
    return {checked(i.value, kHeight * kWidth, i.where), i.where};
  }
  [[gnu::no_sanitize_coverage]] Reference<T, Space::Shared> operator()(Index row, Index column) {
    return {at(row, column, 1), column.where};
  }
  template <int kCount>
  [[gnu::no_sanitize_coverage]] Vector<T, kCount> load(Index row, Index column) {
    return whole<kCount>(row, column);
  }
  template <int kCount>
  [[gnu::no_sanitize_coverage]] void store(Index row, Index column,
                                           const Vector<T, kCount>& values) {
    whole<kCount>(row, column) = values;
  }

 private:
  template <int kCount>
  [[gnu::no_sanitize_coverage]] Reference<Vector<T, kCount>, Space::Shared> whole(
      const Index& row, const Index& column) {
    return {reinterpret_cast<Vector<T, kCount>*>(at(row, column, kCount)), column.where};
  }
  [[gnu::no_sanitize_coverage]] T* checked(std::int64_t i, std::int64_t size,
                                           const Location& where) {
    if (i < 0 || i >= size) emulation::fail_out_of_bounds(i, size, where);
    return data + i;
  }
  [[gnu::no_sanitize_coverage]] T* at(const Index& row, const Index& column, int count) {
    checked(column.value + count - 1, kWidth, column.where);
    return checked(row.value, kHeight, row.where) + row.value * (kWidth - 1) + column.value;
  }
};

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
