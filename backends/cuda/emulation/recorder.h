// Looks on while a block runs: counts its requests, and checks every access.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/cuda/emulation/block.h"
#include "backends/cuda/emulation/counters.h"

namespace triptych::cuda::emulation {

class AccessOrder;
class GlobalHistory;
class GlobalShadow;
class GlobalWindow;
class RequestWatcher;
class SharedShadow;
struct LineBegin;
struct PieceOrigin;

/// A piece of straight code of a kernel that is compiled to be watched so.
struct PieceCode {
  const void* pc = nullptr;  ///< to which the call at its beginning returns
  Location where;
  bool is_own = false;  ///< of the user's source: counters tell of it
};

/// The number that a recorder gave to the accesses of a place, for those who keep it.
struct KnownSite {
  std::uint32_t number = ~0U;  ///< not known
  Space space = Space::Global;
  Access access = Access::Load;
};

/// An instruction of a kernel that has run before. It stays the same as long as its recorder.
struct KnownCode {
  PieceCode code;
  KnownSite site;         ///< of its last access
  std::size_t array = 0;  ///< the array that it accessed last
};

class Recorder;
/// Recorder::current().
extern constinit thread_local Recorder* current_recorder;

class Recorder : public BlockObserver {
 public:
  /// Checks accesses where there is a shadow of global memory. Without `counts` it does nothing
  /// else.
  Recorder(GlobalShadow* global, bool counts);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Reports every request from now on to `watcher`. nullptr: to none.
  void tell(RequestWatcher* watcher) { watcher_ = watcher; }

  /// The recorder of the thread that runs now.
  [[gnu::no_sanitize_coverage]] static Recorder& current() { return *current_recorder; }

  [[gnu::no_sanitize_coverage]] static Manner plain(Access access) {
    return {access, Strength::Plain, access != Access::Load};
  }

  void access(Space space, const Manner& manner, const void* address, unsigned bytes,
              const Location& where);
  /// The same at a place that was here before.
  void access(Space space, const Manner& manner, const void* address, unsigned bytes,
              const Location& where, KnownSite& site);
  /// The entry of the instruction before `pc`. nullptr: it has none.
  KnownCode* known_code(const void* pc) const {
    const auto last = code_table_.size() - 1;
    auto place = hash_of(pc) & last;
    while (code_table_[place] != nullptr && code_table_[place]->code.pc != pc) {
      place = (place + 1) & last;
    }
    return code_table_[place];
  }
  /// Makes one, which stays where it is.
  KnownCode& add_code(const PieceCode& code);
  /// The last access, an atomic operation, writes.
  void written(Space space, const void* address, unsigned bytes, const Location& where);
  /// The running thread fences memory: for its block, or for all of them.
  void fence(const Location& where, bool for_all_blocks);
  /// The running thread begins a piece of straight code (piece_of_code).
  void pass(std::uint64_t piece, const PieceCode& code, const PieceOrigin& origin);
  /// The same, if lanes of the warp did so before the running thread. False: call pass().
  bool follow(const void* pc, const void* frame, const void* caller);
  /// The same without a place in the source.
  void pass(std::uint64_t piece);
  /// The running thread begins a line of a library that was compiled for the debugger.
  void begin_line(const LineBegin& line, const Location& where);
  /// A store to shared memory that was counted when requested, and happens now.
  void land(const void* address, unsigned bytes, const Location& where);
  /// The running thread begins a copy to shared memory, which stores later.
  void begin_copy(const void* address, unsigned bytes, const Location& where);

  /// Products on the tensor cores in units of 16 x 8 x 16, and bytes that the copy engine reads.
  void multiplied(std::uint64_t products) { counters_.matrix_products += products; }
  void bulk_copied(std::uint64_t bytes) { counters_.bulk_bytes += bytes; }
  /// The copy engine reads global memory for the running thread.
  void read_by_copy(const void* address, std::size_t bytes, const Location& where);

  void begin_block(unsigned threads) override;
  void end_block() override;
  void thread_ended(unsigned thread) override;
  void failed() override;
  void barrier_passed(const Location& where) override;
  void warp_met(unsigned warp, std::uint32_t mask, WarpWork work) override;
  bool checks() const override { return shadow_ != nullptr; }
  bool counts() const override { return counts_; }

  /// Counts since the last call.
  KernelCounters take();

 private:
  struct SiteEntry {
    Location where;
    Space space;
    Access access;
    AccessCounters counters;
  };
  struct LocationHash {
    std::size_t operator()(const Location& at) const {
      return at.line() * 2654435761U + at.column() * 40503U + at.part() * 7919U;
    }
  };
  struct PassEntry {
    PieceCode code;
    PassCounters counters;
  };
  /// A piece of code as Lockstep knows it.
  struct Piece {
    std::uint64_t key = 0;
    std::uint32_t node = 0;    ///< 0: not known yet
    std::uint32_t pass = ~0U;  ///< number of its counters
  };
  struct Warp;
  class Counting;

  std::uint32_t site_of(Space space, Access access, const Location& where);
  void watch(Space space, const Manner& manner, const void* address, unsigned bytes,
             const Location& where);
  void check(const Manner& manner, const void* address, unsigned bytes, const Location& where);
  Piece& piece_of(std::uint64_t key);
  void begin_piece(const Piece& piece, const PieceOrigin& origin);
  void advance(unsigned thread);
  void close(unsigned warp);
  void count(std::uint32_t site, unsigned warp, const Request& request);
  void tell(std::uint32_t site, unsigned warp, Request request) const;

  static std::size_t hash_of(const void* pc) {
    return reinterpret_cast<std::uintptr_t>(pc) * 0x9E3779B97F4A7C15U >> 32;
  }

  bool counts_;
  RequestWatcher* watcher_ = nullptr;
  std::vector<SiteEntry> sites_;
  std::vector<std::uint32_t> buckets_;  ///< hash table of indices into sites_, plus 1
  std::vector<PassEntry> passes_;
  std::unordered_map<const void*, std::uint32_t> pass_numbers_;
  std::deque<KnownCode> codes_;
  std::vector<KnownCode*> code_table_;  ///< by hash. Their number is a power of two
  std::vector<Piece> known_pieces_;     ///< by a part of the key
  std::unordered_map<std::uint64_t, Piece> pieces_;
  std::vector<std::unique_ptr<Warp>> warps_;
  unsigned threads_ = 0;
  KernelCounters counters_;
  std::unique_ptr<AccessOrder> order_;
  std::unique_ptr<SharedShadow> shadow_;
  std::unique_ptr<GlobalWindow> global_;
  std::unique_ptr<GlobalHistory> history_;
};

/// The key of a piece of code: its beginning, the frame of the running thread's stack that it runs
/// in, and the call site of that function.
std::uint64_t piece_of_code(const void* pc, const void* frame, const void* caller);

}  // namespace triptych::cuda::emulation
