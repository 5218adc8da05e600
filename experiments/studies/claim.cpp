// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "experiments/studies/examinations.h"

namespace triptych::studies {
namespace {

constexpr std::array kClaims = {
    Claim{"bandwidth", "What bandwidth decides",
          "A GPU is faster than a CPU because of the bandwidth of its memory.", "survey, figure 1",
          "For each kind of operator of a training step, by the roofline: the speedup, and what is "
          "left of it if the GPU had only the CPU's bandwidth. At least nine tenths of the speedup "
          "(in logarithms) are lost of all kinds: holds here; of some: under conditions; of none: "
          "wrong.",
          &examine_bandwidth},
    Claim{
        "sram", "SRAM beside HBM",
        "A GPU's SRAM has 19 TB/s, about ten times the 1.5 to 2.0 TB/s of its HBM.",
        "survey of attention on GPUs, memory hierarchy",
        "On-chip over off-chip bandwidth from 7.5 to 13.3 on an A100 and on the newer GPUs: holds "
        "here; on the A100 alone: out of date; not there: wrong.",
        &examine_sram},
    Claim{
        "transfer", "Small tasks and transfers",
        "Small tasks lose on an accelerator: copying costs more than it saves.",
        "survey, discussion of figure 3",
        "Convolutions from small to large. Some are faster than on the CPU without the copies and "
        "slower with them: holds, here if the largest is faster with them, else under "
        "conditions; none: wrong.",
        &examine_transfers},
    Claim{
        "batch", "Speedup and batch", "The speedup over the CPU grows with the batch.",
        "survey, figure 3",
        "Speedup at the largest batch over that at batch 1. At least 1.5: holds, here if the last "
        "doubling still adds 5 %, else under conditions; at most 1.1: wrong; else under "
        "conditions.",
        &examine_batch},
    Claim{"reuse", "Reuse of operands",
          "A TPU reuses operands within its matrix unit instead of reading them again.",
          "surveys of TPUs",
          "Reads per multiply-add of the memory nearest to the arithmetic, in one product: the "
          "array's at most half of the least of CPU and GPU kernels: holds here; less: under "
          "conditions; else wrong.",
          &examine_reuse},
    Claim{"large-products", "Large products",
          "TPUs pay only for large models that train for weeks.", "surveys of TPUs",
          "Utilisation of the array. A small square product above 75 %: wrong. Small below 25 %, "
          "large above 75 %, and shapes of equal work within 1.5 times of each other: holds here; "
          "else under conditions: shape decides, not size or time.",
          &examine_utilisation},
    Claim{
        "matrix-units", "Matrix units of GPUs",
        "GPUs have matrix units of their own, but to a lesser extent than TPUs.", "surveys of TPUs",
        "Matrix units less than twice as fast as the ordinary ones on the newest GPU: holds here; "
        "at least as fast as the newest TPU's: out of date; else under conditions.",
        &examine_matrix_units},
    Claim{"cpu-parallelism", "Parallelism of a CPU", "A CPU has minimal parallelism.",
          "surveys of TPUs",
          "The fastest kernel on all threads over scalar code on one. At most 2: holds here; at "
          "least 10: wrong; else under conditions.",
          &examine_cpu_parallelism},
    Claim{
        "flash-attention", "FlashAttention",
        "FlashAttention is faster because it moves less between HBM and SRAM.",
        "survey of attention on GPUs",
        "Bytes that an emulated GPU counts. Less than the materialised form, and both within 10 % "
        "of their formulas: holds here; less: under conditions; else wrong.",
        &examine_attention},
    Claim{"ring", "Ring and parameter server",
          "A parameter server's bandwidth grows with the workers, a ring's does not.",
          "survey of distributed training",
          "Bytes over the busiest link, from the schedules. The server's in proportion to the "
          "workers and the ring's below twice the model: holds here; the server's growing faster: "
          "under conditions; else wrong.",
          &examine_ring},
    Claim{"averaging", "Averaging weights",
          "Averaging weights is faster than synchronous training, but it is not "
          "backpropagation.",
          "survey of distributed training",
          "Less communication, and other weights than synchronous training: holds here if they "
          "differ by more than 0.001 even when averaged in every step, else under conditions; not "
          "less, or the same weights: wrong.",
          &examine_averaging},
    Claim{"model-parallel-gradients", "Gradients under model parallelism",
          "Under model parallelism the devices see the same data and all-reduce their gradients.",
          "survey of distributed training",
          "Elements that the ranks of a model cut into layers sum in a step. At least half as many "
          "as it has parameters: holds here; below a hundredth: wrong; else under conditions.",
          &examine_model_parallel_gradients},
    Claim{"strategies", "Data against model parallelism",
          "On two GPUs data parallelism is 30.5 % faster and model parallelism 4.5 %.",
          "survey, table 2",
          "Modelled speedups on two of its GPUs. Within 5 points of the table from data sheets: "
          "holds here; with the fitted assumptions alone: under conditions; else wrong.",
          &examine_strategies},
};

}  // namespace

std::string_view to_string(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::HoldsHere:
      return "holds here";
    case ClaimVerdict::HoldsUnderConditions:
      return "holds under these conditions";
    case ClaimVerdict::OutOfDate:
      return "out of date";
    case ClaimVerdict::Wrong:
      return "wrong";
  }
  return "";
}

std::span<const Claim> claims() { return kClaims; }

std::vector<const Claim*> find_claims(std::span<const std::string> ids) {
  std::vector<std::string_view> names;
  names.reserve(kClaims.size());
  for (const auto& claim : kClaims) names.push_back(claim.id);
  for (const auto& id : ids) {
    if (std::ranges::find(names, id) != names.end()) continue;
    throw InvalidArgument(
        fmt::format("no claim \"{}\"; choose from: {}", id, fmt::join(names, ", ")));
  }
  std::vector<const Claim*> found;
  for (const auto& claim : kClaims) {
    const bool asked = std::ranges::find(ids, claim.id) != ids.end();
    if (ids.empty() || asked) found.push_back(&claim);
  }
  return found;
}

Json to_json(const Claim& claim, const Finding& finding) {
  return {{"id", claim.id},
          {"title", claim.title},
          {"claim", claim.statement},
          {"source", claim.source},
          {"verdict", to_string(finding.verdict)},
          {"rule", claim.rule},
          {"why", finding.why},
          {"commands", finding.commands},
          {"tables", finding.tables},
          {"charts", finding.charts}};
}

}  // namespace triptych::studies
