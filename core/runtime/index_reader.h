// Kernels that take elements at indices: a device cannot throw, so it stores the fault, and the
// executor reads it after the run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/gather.h"
#include "core/runtime/kernel.h"

namespace triptych {

/// The part of a kernel that knows its axis and indices, which are input 1. For one out of range
/// the kernel stores a word of IndexFault and computes with another index in its place.
class IndexReader {
 public:
  /// Throws InvalidArgument when the indices are constant and one is outside of x's `axis`.
  IndexReader(const KernelQuery& query, const Shape& x, std::int64_t axis)
      : geometry_(x, axis, query.inputs[1].spec.shape),
        known_(query.constants.size() > 1 && query.constants[1] != nullptr) {
    if (known_) check_indices(query.op.name(), *query.constants[1], geometry_.size);
  }
  IndexReader(const IndexReader&) = delete;
  IndexReader& operator=(const IndexReader&) = delete;
  virtual ~IndexReader() = default;

  /// Size of the axis. 0: the indices were checked.
  std::int64_t unchecked_size() const { return known_ ? 0 : geometry_.size; }
  /// Device memory of one word, 0 before the run. Without one nothing is reported.
  void report_to(std::uint64_t* word) { report_ = word; }

 protected:
  const GatherGeometry& geometry() const { return geometry_; }
  std::uint64_t* report() const { return report_; }

 private:
  GatherGeometry geometry_;
  bool known_;
  std::uint64_t* report_ = nullptr;
};

}  // namespace triptych
