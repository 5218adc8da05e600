// Cooperative groups for users' programs: grids of cooperative launches, blocks, tiles of a warp,
// groups of active lanes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
#pragma clang force_cuda_host_device begin
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
namespace cooperative_groups {

using triptych::cuda::emulation::Location;

namespace details {

TRIPTYCH_UNWATCHED inline unsigned thread_rank_in_block() {
  const auto at = triptych::cuda::plain::services->indices();
  return (at.thread.z * at.block_dim.y + at.thread.y) * at.block_dim.x + at.thread.x;
}
TRIPTYCH_UNWATCHED inline unsigned block_size() {
  const auto at = triptych::cuda::plain::services->indices();
  return static_cast<unsigned>(at.block_dim.count());
}
/// The lanes that the running warp has.
TRIPTYCH_UNWATCHED inline unsigned lanes_of_warp() {
  const unsigned lane = triptych::cuda::emulation::lane_index();
  const unsigned count = block_size() - (thread_rank_in_block() - lane);
  return count >= 32 ? ~0U : (1U << count) - 1;
}
/// The value of a lane. Types of more than 8 bytes need a shuffle for each 8.
template <class T>
TRIPTYCH_UNWATCHED T shuffle(unsigned mask, T value, int lane, const Location& where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 32,
                "groups shuffle values of at most 32 bytes");
  if constexpr (sizeof(T) <= 8) {
    return __shfl_sync(mask, value, lane, 32, where);
  } else {
    unsigned long long words[(sizeof(T) + 7) / 8] = {};
    std::memcpy(words, &value, sizeof(T));
    for (auto& word : words) word = __shfl_sync(mask, word, lane, 32, where);
    std::memcpy(&value, words, sizeof(T));
    return value;
  }
}

}  // namespace details

class grid_group {
 public:
  TRIPTYCH_UNWATCHED unsigned long long size() const {
    return triptych::cuda::plain::services->indices().grid_dim.count() * details::block_size();
  }
  TRIPTYCH_UNWATCHED unsigned long long num_threads() const { return size(); }
  TRIPTYCH_UNWATCHED unsigned long long block_rank() const {
    const auto at = triptych::cuda::plain::services->indices();
    return (static_cast<unsigned long long>(at.block.z) * at.grid_dim.y + at.block.y) *
               at.grid_dim.x +
           at.block.x;
  }
  TRIPTYCH_UNWATCHED unsigned long long num_blocks() const {
    return triptych::cuda::plain::services->indices().grid_dim.count();
  }
  TRIPTYCH_UNWATCHED unsigned long long thread_rank() const {
    return block_rank() * details::block_size() + details::thread_rank_in_block();
  }
  TRIPTYCH_UNWATCHED dim3 group_dim() const {
    const auto d = triptych::cuda::plain::services->indices().grid_dim;
    return {d.x, d.y, d.z};
  }
  TRIPTYCH_UNWATCHED bool is_valid() const {
    return triptych::cuda::plain::services->is_cooperative();
  }
  TRIPTYCH_UNWATCHED void sync(Location where = Location::current()) const {
    triptych::cuda::plain::services->grid_barrier(where);
  }
};

class thread_block {
 public:
  TRIPTYCH_UNWATCHED static unsigned size() { return details::block_size(); }
  TRIPTYCH_UNWATCHED static unsigned num_threads() { return details::block_size(); }
  TRIPTYCH_UNWATCHED static unsigned thread_rank() { return details::thread_rank_in_block(); }
  TRIPTYCH_UNWATCHED static dim3 group_index() {
    const auto b = triptych::cuda::plain::services->indices().block;
    return {b.x, b.y, b.z};
  }
  TRIPTYCH_UNWATCHED static dim3 thread_index() {
    const auto t = triptych::cuda::plain::services->indices().thread;
    return {t.x, t.y, t.z};
  }
  TRIPTYCH_UNWATCHED static dim3 group_dim() {
    const auto d = triptych::cuda::plain::services->indices().block_dim;
    return {d.x, d.y, d.z};
  }
  TRIPTYCH_UNWATCHED static dim3 dim_threads() { return group_dim(); }
  TRIPTYCH_UNWATCHED static void sync(Location where = Location::current()) {
    __syncthreads(where);
  }
};

/// Lanes of a warp, by their mask.
class coalesced_group {
 public:
  TRIPTYCH_UNWATCHED explicit coalesced_group(unsigned mask) : mask_(mask) {}
  TRIPTYCH_UNWATCHED unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  TRIPTYCH_UNWATCHED unsigned num_threads() const { return size(); }
  TRIPTYCH_UNWATCHED unsigned thread_rank() const {
    const unsigned lane = triptych::cuda::emulation::lane_index();
    return static_cast<unsigned>(__popc(mask_ & ((1U << lane) - 1)));
  }
  TRIPTYCH_UNWATCHED void sync(Location where = Location::current()) const {
    __syncwarp(mask_, where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl(T value, unsigned rank, Location where = Location::current()) const {
    return details::shuffle(mask_, value, lane_of(rank % size()), where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl_down(T value, unsigned delta,
                                 Location where = Location::current()) const {
    const unsigned rank = thread_rank();
    return details::shuffle(mask_, value, lane_of(rank + delta < size() ? rank + delta : rank),
                            where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl_up(T value, unsigned delta,
                               Location where = Location::current()) const {
    const unsigned rank = thread_rank();
    return details::shuffle(mask_, value, lane_of(rank >= delta ? rank - delta : rank), where);
  }
  template <class T>
  TRIPTYCH_UNWATCHED T shfl_xor(T value, unsigned with,
                                Location where = Location::current()) const {
    const unsigned rank = thread_rank() ^ with;
    return details::shuffle(mask_, value, lane_of(rank < size() ? rank : thread_rank()), where);
  }
  TRIPTYCH_UNWATCHED int any(int predicate, Location where = Location::current()) const {
    return __any_sync(mask_, predicate, where);
  }
  TRIPTYCH_UNWATCHED int all(int predicate, Location where = Location::current()) const {
    return __all_sync(mask_, predicate, where);
  }
  /// Bit i is the vote of rank i.
  TRIPTYCH_UNWATCHED unsigned ballot(int predicate, Location where = Location::current()) const {
    const unsigned votes = __ballot_sync(mask_, predicate, where);
    unsigned packed = 0, rank = 0;
    for (unsigned rest = mask_; rest != 0; rest &= rest - 1, ++rank) {
      packed |= (votes >> (__ffs(static_cast<int>(rest)) - 1) & 1U) << rank;
    }
    return packed;
  }
  template <class T>
  TRIPTYCH_UNWATCHED unsigned match_any(T value, Location where = Location::current()) const {
    return __match_any_sync(mask_, value, where);
  }
  TRIPTYCH_UNWATCHED unsigned lane_mask() const { return mask_; }

 protected:
  TRIPTYCH_UNWATCHED int lane_of(unsigned rank) const {
    unsigned rest = mask_;
    for (; rank > 0; --rank) rest &= rest - 1;
    return __ffs(static_cast<int>(rest)) - 1;
  }
  unsigned mask_;
};

/// kSize neighbouring lanes of a warp.
template <unsigned kSize, class Parent = void>
class thread_block_tile : public coalesced_group {
  static_assert(kSize >= 1 && kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "tiles of more than a warp are not emulated");

 public:
  TRIPTYCH_UNWATCHED thread_block_tile() : coalesced_group(mask_of_lane()) {}
  template <class Other>
  TRIPTYCH_UNWATCHED thread_block_tile(const thread_block_tile<kSize, Other>&)
      : thread_block_tile() {}
  TRIPTYCH_UNWATCHED static constexpr unsigned size() { return kSize; }
  TRIPTYCH_UNWATCHED static constexpr unsigned num_threads() { return kSize; }
  TRIPTYCH_UNWATCHED static unsigned thread_rank() {
    return details::thread_rank_in_block() % kSize;
  }
  TRIPTYCH_UNWATCHED static unsigned meta_group_rank() {
    return details::thread_rank_in_block() / kSize;
  }
  TRIPTYCH_UNWATCHED static unsigned meta_group_size() {
    return (details::block_size() + kSize - 1) / kSize;
  }

 private:
  TRIPTYCH_UNWATCHED static unsigned mask_of_lane() {
    const unsigned lane = triptych::cuda::emulation::lane_index();
    const unsigned first = lane & ~(kSize - 1);
    return (kSize == 32 ? ~0U : ((1U << kSize % 32) - 1) << first) & details::lanes_of_warp();
  }
};

/// Any group of a block: the block itself, or lanes of a warp.
class thread_group {
 public:
  TRIPTYCH_UNWATCHED thread_group(const thread_block&) : mask_(0) {}
  TRIPTYCH_UNWATCHED thread_group(const coalesced_group& lanes) : mask_(lanes.lane_mask()) {}
  TRIPTYCH_UNWATCHED unsigned size() const {
    return is_block() ? details::block_size() : lanes().size();
  }
  TRIPTYCH_UNWATCHED unsigned num_threads() const { return size(); }
  TRIPTYCH_UNWATCHED unsigned thread_rank() const {
    return is_block() ? details::thread_rank_in_block() : lanes().thread_rank();
  }
  TRIPTYCH_UNWATCHED bool is_valid() const { return true; }
  TRIPTYCH_UNWATCHED void sync(Location where = Location::current()) const {
    if (is_block()) return __syncthreads(where);
    lanes().sync(where);
  }
  TRIPTYCH_UNWATCHED bool is_block() const { return mask_ == 0; }
  TRIPTYCH_UNWATCHED coalesced_group lanes() const { return coalesced_group(mask_); }

 private:
  unsigned mask_;  ///< 0: the block
};

TRIPTYCH_UNWATCHED inline thread_block this_thread_block() { return {}; }
TRIPTYCH_UNWATCHED inline grid_group this_grid() { return {}; }
/// The lane itself: a GPU may run the lanes of a warp together here, and need not.
TRIPTYCH_UNWATCHED inline coalesced_group coalesced_threads() {
  return coalesced_group(1U << triptych::cuda::emulation::lane_index());
}
template <unsigned kSize, class Parent>
TRIPTYCH_UNWATCHED thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}
template <class Group>
TRIPTYCH_UNWATCHED void sync(const Group& group, Location where = Location::current()) {
  group.sync(where);
}

}  // namespace cooperative_groups
#pragma clang attribute pop
#pragma clang force_cuda_host_device end
// NOLINTEND(readability-identifier-naming)
