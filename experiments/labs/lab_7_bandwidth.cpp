// Lab 7, "Bandwidth, batch, energy": bytes and products of layers, what bounds them, and the batch
// from which on an accelerator pays.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/base/random.h"
#include "experiments/labs/all_labs.h"
#include "experiments/labs/array_counters.h"
#include "experiments/labs/sheet.h"

namespace triptych::labs {
namespace {

ArrayCounters layer(Bench& bench, const std::string& node) {
  return {bench,
          {"--model", "unet-s", "--backend", "systolic", "--machine", "mmu16", "--contract", "bf16",
           "--node", node}};
}

ArrayCounters product(Bench& bench, std::int64_t m, std::int64_t k, std::int64_t n) {
  return {bench,
          {"matmul", "--machine", "mmu16", "--m", std::to_string(m), "--k", std::to_string(k),
           "--n", std::to_string(n)}};
}

std::int64_t dram_bytes(const ArrayCounters& counters) {
  return counters["dram_load_bytes"] + counters["dram_weights_bytes"] +
         counters["dram_compute_bytes"] + counters["dram_store_bytes"];
}

void grade_measured(const Sheet& sheet, Bench& bench, Report& report) {
  constexpr const char* bytes = "add up the four dram_..._bytes of step 2";
  const auto bottom = layer(bench, "bottom.conv1");
  report.exact(
      "first_layer_bytes", 5,
      sheet.problem_of_value("first_layer_bytes", dram_bytes(layer(bench, "down1.conv0")), bytes));
  report.exact("bottom_bytes", 5,
               sheet.problem_of_value("bottom_bytes", dram_bytes(bottom), bytes));
  report.exact("bottom_cycles", 5,
               sheet.problem_of_value("bottom_cycles", bottom.cycles(), "it is cycles of step 2"));
  report.exact("head_bytes", 5,
               sheet.problem_of_value("head_bytes", dram_bytes(layer(bench, "head")), bytes));
}

/// Values of the formulas for one product of matrices.
struct ProductSamples {
  std::vector<Sample> weights, activations, results, intensity, dram_cycles;

  void add(const Variables& at, const ArrayCounters& counters) {
    const auto bytes = static_cast<double>(dram_bytes(counters));
    weights.push_back({at, static_cast<double>(counters["dram_weights_bytes"])});
    activations.push_back({at, static_cast<double>(counters["dram_load_bytes"])});
    results.push_back({at, static_cast<double>(counters["dram_store_bytes"])});
    intensity.push_back({at, 2 * static_cast<double>(counters["macs"]) / bytes});
    dram_cycles.push_back({at, bytes / at.at("B")});
  }
};

void grade_products(const Sheet& sheet, Bench& bench, RandomStream& hidden, Report& report) {
  ProductSamples samples;
  for (int i = 0; i < 4; ++i) {
    // Few rows, which all lie in the accumulators: each weight is fetched once.
    const auto m = 1 + hidden.below(30), k = 16 * (2 + hidden.below(16)), n = 9 + hidden.below(200);
    samples.add({{"m", static_cast<double>(m)},
                 {"k", static_cast<double>(k)},
                 {"n", static_cast<double>(n)},
                 {"B", static_cast<double>(4 + hidden.below(60))}},
                product(bench, m, k, n));
  }
  report.exact("formula weights_bytes", 5,
               sheet.problem_of_formula("weights_bytes", samples.weights,
                                        "a weight has 2 bytes, and is fetched once for all rows"));
  report.exact("formula activation_bytes", 5,
               sheet.problem_of_formula("activation_bytes", samples.activations,
                                        "each of the m rows has k numbers of 2 bytes"));
  report.exact(
      "formula result_bytes", 5,
      sheet.problem_of_formula("result_bytes", samples.results, "results leave as float32"));
  report.exact("formula intensity", 7,
               sheet.problem_of_formula("intensity", samples.intensity,
                                        "a multiply-add is two operations; all bytes count"));
  report.exact("formula dram_cycles", 5,
               sheet.problem_of_formula("dram_cycles", samples.dram_cycles,
                                        "all bytes, at B bytes per cycle"));
}

/// An accelerator beside a processor, in seconds.
struct Offer {
  double cpu, accelerator, fixed, latency;  ///< the first two per image
  double bytes, bandwidth;                  ///< bytes per image over the link

  bool pays(std::int64_t batch) const {
    const auto images = static_cast<double>(batch);
    return fixed + latency + images * (accelerator + bytes / bandwidth) < images * cpu;
  }
  double break_even() const {
    std::int64_t batch = 1;
    while (!pays(batch)) ++batch;
    return static_cast<double>(batch);
  }
};

void grade_break_even(const Sheet& sheet, RandomStream& hidden, Report& report) {
  std::vector<Sample> samples;
  for (int i = 0; i < 6; ++i) {
    Offer offer{.cpu = hidden.uniform(0.02F, 0.04F),
                .accelerator = hidden.uniform(1e-4F, 3e-3F),
                .fixed = hidden.uniform(0.1F, 0.8F),
                .latency = hidden.uniform(1e-6F, 1e-3F),
                .bytes = hidden.uniform(5e6F, 1.2e7F),
                .bandwidth = hidden.uniform(1e9F, 2e9F)};
    samples.push_back({{{"cpu", offer.cpu},
                        {"accelerator", offer.accelerator},
                        {"fixed", offer.fixed},
                        {"latency", offer.latency},
                        {"bytes", offer.bytes},
                        {"bandwidth", offer.bandwidth}},
                       offer.break_even()});
  }
  report.exact("formula break_even", 13,
               sheet.problem_of_formula(
                   "break_even", samples,
                   "it is the smallest whole number of images for which fixed + latency + b times "
                   "what an image takes there, its transfer too, is less than b times cpu"));
}

void grade(const Submission& submission, Bench& bench, Report& report) {
  RandomStream hidden(submission.seed(), 7);
  const Sheet sheet(submission, "formulas.json");
  grade_measured(sheet, bench, report);
  grade_products(sheet, bench, hidden, report);
  grade_break_even(sheet, hidden, report);
}

double weights_percent(const ArrayCounters& counters) {
  return 100 * static_cast<double>(counters["dram_weights_bytes"]) /
         static_cast<double>(dram_bytes(counters));
}

/// DRAM's part of the energy at 1.95 nJ for 8 bytes, a multiply-add being 2 pJ
/// (machines/energy.cpp).
double dram_percent(const ArrayCounters& counters) {
  const double dram = 1950.0 / 8 * static_cast<double>(dram_bytes(counters));
  return 100 * dram / (dram + 2 * static_cast<double>(counters["macs"]));
}

std::vector<Prediction> predictions(Bench& bench) {
  const Offer offer{
      .cpu = 0.010, .accelerator = 0.001, .fixed = 0.050, .latency = 0, .bytes = 0, .bandwidth = 1};
  return {{"weights_percent_1", 5, weights_percent(product(bench, 1, 256, 256)), 0.1},
          {"weights_percent_32", 5, weights_percent(product(bench, 32, 256, 256)), 0.1},
          {"break_even", 5, offer.break_even(), 0},
          {"energy_percent", 5, dram_percent(layer(bench, "bottom.conv1")), 0.05}};
}

constexpr Explanation kExplanations[] = {
    {"q1", 4, "7192b8c3cd3a5295abb1c21baa9b1d794c2c4d4c32f4066d0b5bf266cda3cd21",
     "which of your three formulas of bytes has no m in it?"},
    {"q2", 4, "d95bfdca9851efabebdab7a1afb872b69e9ac26361bf59500df9a56cc8def5c6",
     "its cycles beside your dram_cycles for its bytes, at 48.57 bytes per cycle"},
    {"q3", 4, "b70e972783f2f40bd9d8abccbb619e7dc4dae98ebaa3d041ca16f62a089fa488",
     "what must happen before the first image, however many follow?"},
    {"q4", 4, "baa56f46a60c10bf44d3f0649a7de372bb97029d4297a5ddf455a2e3c084a66e",
     "put your numbers of step 2 into bytes times 244 pJ and multiply-adds times 2 pJ"},
    {"q5", 4, "8797045e5131ebd5bc201cd6be78ba56138d6c6c61e51f940e230006d36a7eb3",
     "what does the time of an image tend to, when the batch grows?"},
};

}  // namespace

Lab lab_7_bandwidth() {
  return {.number = 7,
          .version = 2,
          .slug = "bandwidth",
          .title = "Bandwidth, batch, energy",
          .question = "what bounds each layer, when does an accelerator pay?",
          .grade = grade,
          .predictions = predictions,
          .explanations = kExplanations};
}

}  // namespace triptych::labs
