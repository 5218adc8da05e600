// One warp as a GPU issues it. Lanes run one after another and record their paths. This merges the
// paths into the instructions of the warp. Lanes that part at a branch meet again at its immediate
// post-dominator in the graph of the warp's own ways (docs/decisions/0086).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::emulation {

class ControlFlow {
 public:
  /// Nodes are pieces of code. The first one has no name of its own, and the last one is no code.
  static constexpr std::uint32_t kStart = 0, kEnd = 1, kFirst = 2;

  void clear();
  /// A lane goes from one piece to the next.
  void add(std::uint32_t from, std::uint32_t to);
  /// Finds the post-dominators. `unfinished`: the last pieces of lanes with an unknown
  /// continuation. A loop that nobody has left ends at its head.
  void solve(std::span<const std::uint32_t> unfinished);
  /// The nearest piece that all ways from `node` lead through, as of the last call of solve().
  std::uint32_t meeting_point(std::uint32_t node) const;

 private:
  using Marks = std::vector<bool>;
  using Edges = std::vector<std::vector<std::uint32_t>>;

  std::uint32_t local(std::uint32_t node);
  void find_exits(std::span<const std::uint32_t> unfinished);
  void find_order();
  void find_meeting_points();
  static void spread(const Edges& edges, std::uint32_t from, Marks& marks);

  std::vector<std::uint32_t> local_;  ///< by node: its number in this graph, plus 1
  std::vector<std::uint32_t> nodes_;  ///< by number
  Edges next_, before_;
  Edges ends_next_, ends_before_;     ///< with the edges to kEnd that are only assumed
  std::vector<std::uint32_t> order_;  ///< from the end: every node after one of its successors
  std::vector<std::uint32_t> meets_;  ///< by number
};

/// Receives the instructions of a warp, in the order of their issue.
class IssueObserver {
 public:
  virtual ~IssueObserver() = default;
  virtual void requested(std::uint32_t site, const Request& request) = 0;
  /// The lanes of `mask` begin a piece of code.
  virtual void passed(std::uint32_t pass, std::uint32_t mask) = 0;
  /// The lanes that passed there together leave that piece on more than one path. Functions that it
  /// called may have run since.
  virtual void parted(std::uint32_t pass) = 0;
};

/// An access of a lane, or with 0 bytes the beginning of a piece of code, with its node and the
/// depth of its frame as address.
struct LaneStep {
  std::uint64_t address = 0;
  std::uint32_t number = 0, bytes = 0;
};

/// The call that reports a piece of code, by which its next run is recognised.
struct PieceOrigin {
  const void* pc = nullptr;      ///< to which it returns. nullptr: not known
  const void* caller = nullptr;  ///< call site of the function
  std::size_t depth = 0;         ///< of its frame in the stack, in bytes
  const Location* where = nullptr;
};

/// The steps of lanes that all take the same path. Each lane has come to some step of the longest.
class CommonPath {
 public:
  void clear();

  /// False: the lane leaves the path.
  bool access(unsigned lane, const LaneStep& step) {
    auto& at = at_[lane];
    if (at.step == steps_.size()) {
      steps_.push_back(step);
      distances_.resize(distances_.size() + kLanes);
    }
    const auto& common = steps_[at.step];
    const auto distance = static_cast<std::int64_t>(step.address - common.address);
    const auto short_distance = static_cast<std::int32_t>(distance);
    if (common.number != step.number || common.bytes != step.bytes || short_distance != distance) {
      return false;
    }
    distances_[at.access * kLanes + lane] = short_distance;
    ++at.step;
    ++at.access;
    return true;
  }
  bool pass(unsigned lane, const LaneStep& step, const PieceOrigin& origin) {
    auto& at = at_[lane];
    if (at.step == steps_.size()) {
      steps_.push_back(step);
      origins_.resize(steps_.size());
      origins_.back() = origin;
    }
    const auto& common = steps_[at.step];
    if (common.address != step.address || common.number != step.number || common.bytes != 0) {
      return false;
    }
    ++at.step;
    return true;
  }

  /// The piece of code that the lane begins next, where others did before it. nullptr: not known.
  const PieceOrigin* next_piece(unsigned lane) const {
    const auto step = at_[lane].step;
    return step < origins_.size() ? origins_.data() + step : nullptr;
  }
  /// The lane begins it.
  void begin_next_piece(unsigned lane) { ++at_[lane].step; }

  /// Steps that the lane has taken.
  std::size_t length(unsigned lane) const { return at_[lane].step; }
  std::size_t length() const { return steps_.size(); }
  const LaneStep& operator[](std::size_t step) const { return steps_[step]; }
  /// The lanes' accesses of a step, which is the access of this number.
  Request request(std::size_t step, std::size_t access, std::uint32_t mask) const;
  /// Steps of one lane.
  std::vector<LaneStep> steps_of(unsigned lane) const;
  /// Forgets the first steps of all lanes.
  void drop(std::size_t steps);

 private:
  static constexpr std::size_t kLanes = 32;
  struct Position {
    std::uint32_t step = 0, access = 0;
  };

  std::vector<PieceOrigin> origins_;     ///< of the steps, as far as there are pieces
  std::vector<LaneStep> steps_;          ///< with the addresses of the first lane to come there
  std::vector<std::int32_t> distances_;  ///< of the lanes' addresses from these, by access
  std::array<Position, kLanes> at_;
};

class Lockstep {
 public:
  static constexpr std::uint32_t kNoPass = ~0U;

  /// All lanes of the mask stand at one place.
  void begin(std::uint32_t lanes);

  void access(unsigned lane, std::uint32_t site, std::uint64_t address, std::uint32_t bytes) {
    if (is_common_ && common_.access(lane, {address, site, bytes})) return;
    if (is_common_) separate();
    lanes_[lane].steps.push_back({address, site, bytes});
  }
  /// The lane begins the piece of code `node` (ControlFlow). `pass`: its number for the observer,
  /// or kNoPass. `depth`: of its function's frame in the stack, which grows with each call.
  void pass(unsigned lane, std::uint32_t node, std::uint32_t pass, std::uint32_t depth = 0,
            const PieceOrigin& origin = {}) {
    const Step step = {node | std::uint64_t{depth} << 32, pass, 0};
    if (is_common_ && common_.pass(lane, step, origin)) return;
    if (is_common_) separate();
    auto& at = lanes_[lane];
    at.last_pass = at.steps.size();
    at.steps.push_back(step);
  }
  /// The origin of the piece that the lane begins, if it is the one of this call and lanes before
  /// it have begun it. nullptr: call pass().
  const PieceOrigin* expected(unsigned lane, const void* pc, const void* caller,
                              std::size_t depth) const {
    if (!is_common_ || common_.length(lane) + 2 >= longest_) return nullptr;
    const auto* origin = common_.next_piece(lane);
    const bool is_it =
        origin != nullptr && origin->pc == pc && origin->caller == caller && origin->depth == depth;
    return is_it ? origin : nullptr;
  }
  void begin_expected(unsigned lane) { common_.begin_next_piece(lane); }
  /// The lane does nothing any more.
  void end(unsigned lane) { ended_ |= 1U << lane; }
  std::uint32_t running() const { return all_ & ~ended_; }

  /// True when the lane's way should be issued as far as possible, to free memory.
  bool is_long(unsigned lane) const {
    return (is_common_ ? common_.length(lane) + (at_start_ ? 1 : 0) : lanes_[lane].steps.size()) >=
           longest_;
  }
  /// Issues the instructions with known lanes.
  void advance(IssueObserver& observer);
  /// The lanes have come together: issues everything. They go on from one place.
  void close(IssueObserver& observer);
  /// Lanes of the mask have come together, which may be all that are left.
  void meet(std::uint32_t mask, IssueObserver& observer);

 private:
  using Step = LaneStep;
  /// A function that a lane runs, with the last piece of it.
  struct Frame {
    std::uint32_t depth = 0, pass = kNoPass;
  };
  using Frames = std::vector<Frame>;  ///< the innermost one is the last
  struct Lane {
    std::vector<Step> steps;
    std::size_t at = 0;         ///< where the piece begins that it runs next
    std::size_t last_pass = 0;  ///< of its steps
    std::size_t scanned = 0;    ///< steps before this one are edges of the graph
    std::uint32_t scanned_node = 0;
    Frames frames;
  };
  /// Lanes that run one piece together, until they come to another group's.
  struct Group {
    std::uint32_t mask = 0, node = 0, until = 0;
  };

  static void enter(Frames& frames, const Step& piece);
  void separate();
  void issue_common(std::size_t end, IssueObserver& observer);
  void advance_common(IssueObserver& observer);
  void run(IssueObserver& observer, bool all);
  bool is_known(std::uint32_t mask, bool all) const;
  void issue(const Group& group, IssueObserver& observer);
  std::uint32_t branch_of(std::uint32_t mask) const;
  bool part(Group& group, bool all);
  void scan(bool all);
  void solve(bool all);
  void forget();
  void leave_group();
  std::uint32_t node_of(unsigned lane) const;

  CommonPath common_;               ///< of all lanes that are active
  bool is_common_ = false;          ///< they have no other steps
  bool at_start_ = false;           ///< the code before the first piece is not issued yet
  std::uint32_t common_node_ = 0;   ///< the last piece of it that was issued
  std::size_t common_scanned_ = 0;  ///< its steps before this one are edges of the graph
  std::uint32_t common_scanned_node_ = 0;
  Frames common_frames_;  ///< effect of its issued pieces on each lane's frames

  std::array<Lane, 32> lanes_;
  std::uint32_t all_ = 0, ended_ = 0;
  std::uint32_t met_ = 0;      ///< lanes that met others since all were together
  std::uint32_t active_ = 0;   ///< lanes that had not ended when they were last together
  std::vector<Group> groups_;  ///< a stack
  ControlFlow flow_;
  bool has_flow_ = false, is_solved_ = false;
  std::size_t longest_ = 0;
};

}  // namespace triptych::cuda::emulation
