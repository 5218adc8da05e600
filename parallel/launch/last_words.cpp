// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/last_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace triptych::parallel {
namespace {

/// Ranks that said nothing: those of them that ended first, when they were seen to end, for the
/// others ended because of them.
std::string name_silent(const std::map<int, LastWords>& words, int ranks,
                        const std::set<int>& first_to_end) {
  std::vector<int> first;
  for (const int rank : first_to_end)
    if (!words.contains(rank)) first.push_back(rank);
  if (first.empty())
    return fmt::format("{} of {} ranks ended without a word", ranks - std::ssize(words), ranks);
  const bool several = first.size() > 1;
  return fmt::format("rank{} {} of {} ended {}without a word", several ? "s" : "",
                     fmt::join(first, ", "), ranks,
                     std::ssize(first) + std::ssize(words) < ranks ? "first, " : "");
}

}  // namespace

void judge(const std::map<int, LastWords>& words, int ranks, const std::set<int>& first_to_end,
           LaunchOutcome& outcome) {
  const LastWords* worst = nullptr;
  for (const auto& [rank, own] : words) {
    if (own.exit_code == 0) continue;
    const bool own_fault =
        own.error.starts_with(fmt::format("rank {} ", rank)) || !own.error.starts_with("rank ");
    if (worst == nullptr || own_fault) worst = &own;
    if (own_fault) break;
  }
  if (worst != nullptr) {
    outcome.verdict = worst->error.empty() ? "stopped" : worst->error;
    const bool culprit_silent = std::ssize(words) < ranks;
    if (!culprit_silent || outcome.exit_code == 0) outcome.exit_code = worst->exit_code;
  } else if (outcome.exit_code != 0 || std::ssize(words) < ranks) {
    if (outcome.exit_code == 0) outcome.exit_code = 1;
    outcome.verdict = name_silent(words, ranks, first_to_end);
  } else {
    outcome.verdict = fmt::format("all {} ranks are done", ranks);
  }
  outcome.verdict += fmt::format(" (exit code {})", outcome.exit_code);
}

int count_lost(const std::map<int, LastWords>& words, const std::set<int>& first_to_end) {
  std::set<int> lost;
  for (const int rank : first_to_end)
    if (!words.contains(rank)) lost.insert(rank);
  for (const auto& [rank, own] : words)
    if (own.lost_rank >= 0) lost.insert(own.lost_rank);
  // One that died before it could announce itself took the others along.
  if (words.empty() && lost.empty()) return 1;
  return static_cast<int>(lost.size());
}

}  // namespace triptych::parallel
