// The contract between the executor and a backend's kernels: `prepare` once, `run` many times on
// given pointers. A kernel never allocates, never checks shapes and never synchronises.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/contract.h"
#include "core/ops/op.h"

namespace triptych {

class CollectiveRunner;
class Device;
class Stream;

/// How a value [n, c, h, w] is stored with the channels of a position together. Element (n, c, y,
/// x) is number ((n * (h + 2 * pad) + y + pad) * (w + 2 * pad) + x + pad) * pitch + c. Positions
/// outside of the image hold 0 in its channels.
struct ChannelsLast {
  DType dtype = DType::BF16;  ///< bfloat16 of a float32 value, or int8 of one
  std::int64_t pad = 0;       ///< positions on each side of an image
  std::int64_t pitch = 0;  ///< elements from a position to the next: c, or those of a whole concat

  bool operator==(const ChannelsLast&) const = default;
};

/// Positions of memory behind the last one of a value that is stored channels last: they may be
/// read, and hold anything.
inline constexpr std::int64_t kSlackPositions = 64;

/// Bytes of memory that a value of this shape then needs, those of slack included.
std::size_t bytes_of(const Shape& shape, const ChannelsLast& format);

/// Operands of a node that a kernel accepts channels last as well as in planes, for float32 and
/// int8 values. The results have the bits that planes rounded to bfloat16 would give, or are
/// themselves rounded.
struct ChannelsLastOperands {
  std::vector<bool> inputs;  ///< by number
  bool output = false;       ///< output 0
  bool all_or_none = false;  ///< the accepted operands must all have this format, or none
  std::int64_t pad = 0;      ///< zero positions that the kernel reads around an image
};

/// How the plan places one operand of a node. Dense row-major, except that neighbours along the
/// first dimension may lie further apart than dense: a producer that writes its channels straight
/// into a concat's output has outer_stride = total channels * height * width.
struct Operand {
  TensorSpec spec;
  std::int64_t outer_stride = 0;  ///< elements from index i to i + 1 of dimension 0
  /// outer_stride is unused then. Only kernels with KernelEntry::channels_last receive this format.
  std::optional<ChannelsLast> channels_last = std::nullopt;

  static Operand dense(TensorSpec spec);
  bool is_dense() const;
};

/// The description of one node that a kernel receives as a query.
struct KernelQuery {
  const Op& op;
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  Contract contract = Contract::F32;
  /// Per input: its data when it is known at plan time and never changes, else nullptr.
  std::span<const Tensor* const> constants;
  /// Who runs collective operators. nullptr: the run has one rank.
  CollectiveRunner* collectives = nullptr;

  /// The operator, which the table guarantees to be a T.
  template <class T>
  const T& as() const {
    return dynamic_cast<const T&>(op);
  }
  bool dense() const;  ///< all operands are dense
};

/// Yes, or no with the reason. A yes may have a note on the choice, for `explain`.
struct Verdict {
  bool accepted = true;
  std::string reason;

  static Verdict yes() { return {}; }
  static Verdict no(std::string reason) { return {false, std::move(reason)}; }
};

/// KernelEntry::accepts of kernels that take every query, or every query with dense operands.
inline Verdict accepts_any(const KernelQuery&) { return Verdict::yes(); }
inline Verdict accepts_dense(const KernelQuery& query) {
  return query.dense() ? Verdict::yes() : Verdict::no("needs dense operands");
}

struct KernelArgs {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch = nullptr;  ///< scratch_bytes() of device memory, aligned to kAlignment
  Stream* stream = nullptr;

  template <class T>
  const T* in(std::size_t i) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* out(std::size_t i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
};

/// A kernel prepared for one node: algorithm picked, constant weights packed, scratch sized.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Bytes that prepare allocates (packed weights), counted by `explain`.
  virtual std::size_t resident_bytes() const { return 0; }
  virtual void run(const KernelArgs& args) = 0;
  /// Makes its one output stay on the device for `next`, which runs there after it and is the only
  /// one to read it, as its input number `input`. The value's memory is touched by neither then.
  /// Says where it stays ("the unified buffer"). Empty: it does not.
  virtual std::string keep_output_for(Kernel& next, std::size_t input) {
    static_cast<void>(next);
    static_cast<void>(input);
    return {};
  }
  /// Counters of the device in all runs of this kernel, by name as in Device::counters(). May be
  /// empty.
  virtual std::map<std::string, double> counters() const { return {}; }
};

/// Where a kernel comes from, and whether it may be chosen.
enum class KernelRole {
  Own,
  Library,  ///< a library of the machine's vendor computes it
  Lesson,   ///< a step of a ladder: runs where it is forced
};

/// Bytes that pass between a level of the memory and the level above it in one run (modelled).
struct LevelTraffic {
  std::string_view level;  ///< "L1", "L2", "memory"
  double bytes = 0;
  double read_bytes = 0;  ///< of them, those that come up. 0: not told apart
};

/// How large a kernel's rounding errors may be, within the operator's bound (ErrorBound).
enum class Accuracy : std::uint8_t {
  PlainSum,       ///< those of the sums that define the operator
  Transformed,    ///< larger: it computes on sums and differences of operands, as Winograd's do
  RoundedResult,  ///< larger: a sum is rounded to bfloat16, also where a float32 stores it
};

/// One line of a backend's kernel table. Entries of one operator stand best first. The first that
/// accepts and is worthwhile is chosen, unless measurement chooses (kernel_choice.h).
struct KernelEntry {
  std::string_view op;    ///< operator name
  std::string_view name;  ///< "gemm", "direct": unique within the operator
  Verdict (*accepts)(const KernelQuery& query);
  /// Throws UnsupportedError where the device, or a library on it, cannot run an accepted query.
  std::unique_ptr<Kernel> (*prepare)(const KernelQuery& query, Device& device);
  KernelRole role = KernelRole::Own;
  /// Whether it is probably the fastest of those that accept. nullptr: yes, after those before it.
  /// One that says no is passed over, unless it is forced or its time is measured. Must not depend
  /// on the size of the batch where other kernels have other bits.
  Verdict (*worth)(const KernelQuery& query) = nullptr;
  /// Bytes that it moves at each level of this device's memory, the nearest first. nullptr: not
  /// modelled.
  std::vector<LevelTraffic> (*traffic)(const KernelQuery& query, const Device& device) = nullptr;
  Accuracy accuracy = Accuracy::PlainSum;
  /// Accepted channels-last operands. The query has planes. nullptr: none.
  ChannelsLastOperands (*channels_last)(const KernelQuery& query) = nullptr;
  /// The device's host (Backend::host) may run the nodes that this kernel refuses.
  bool optional = false;
};

using KernelTable = std::span<const KernelEntry>;

/// An entry for a kernel class K with `static Verdict accepts(const KernelQuery&)` and the
/// constructor `K(const KernelQuery&, Device&)`.
template <class K>
KernelEntry kernel_entry(std::string_view op, std::string_view name,
                         KernelRole role = KernelRole::Own) {
  return {op, name, &K::accepts,
          [](const KernelQuery& query, Device& device) {
            return std::unique_ptr<Kernel>(std::make_unique<K>(query, device));
          },
          role};
}

}  // namespace triptych
