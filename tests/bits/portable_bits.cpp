// Fingerprints of the host's floating-point computations before training: elementary functions,
// normal numbers, warped patches and a synthetic picture. portable_bits.py compiles this, with the
// tested sources, in several ways.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "core/base/fnv1a.h"
#include "core/base/random.h"
#include "core/base/wide_math.h"
#include "experiments/training/data/augment.h"
#include "experiments/training/data/synthetic.h"

namespace {

using namespace triptych;

template <class T>
void print(const char* name, const std::vector<T>& values) {
  const auto hash = fnv1a(std::as_bytes(std::span(values)));
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash));
}

void print_functions() {
  RandomStream random(1, 1);
  std::vector<double> values;
  for (int i = 0; i < 20000; ++i) {
    const double x = 40 * double{random.uniform()} - 20 + double{random.uniform()} * 0x1p-24;
    for (const auto function : {wide::sin, wide::cos, wide::exp}) values.push_back(function(x));
    values.push_back(wide::log(x * x + 0x1p-60));
  }
  print("functions", values);
}

void print_normals() {
  RandomStream random(1, 2);
  std::vector<float> values;
  for (int i = 0; i < 20000; ++i) values.push_back(random.normal());
  print("normals", values);
}

std::vector<float> membranes() {
  std::vector<float> values;
  const auto picture =
      segmentation::make_membranes({.size = {160, 200}, .classes = 1, .cell_size = 30}, 3);
  for (const auto sample : picture.image.samples) values.push_back(static_cast<float>(sample));
  return values;
}

void print_patches() {
  segmentation::Sample sample{"picture", "", 1, 160, 200, membranes(), {}};
  sample.labels.assign(static_cast<std::size_t>(sample.pixels()), 0);
  const segmentation::IntensityOptions all = {.blur = true,
                                              .brightness = true,
                                              .contrast = true,
                                              .gamma = true,
                                              .noise = true,
                                              .deviation = {40}};
  const segmentation::AugmentOptions options = {.height = 64,
                                                .width = 48,
                                                .max_rotation_degrees = 180,
                                                .elastic_sigma = 4,
                                                .zoom = true,
                                                .intensity = all};
  std::vector<float> values;
  for (std::uint64_t stream = 0; stream < 40; ++stream) {
    RandomStream random(7, stream);
    const auto patch = segmentation::augment(sample, options, random);
    values.insert(values.end(), patch.image.begin(), patch.image.end());
  }
  print("patches", values);
}

}  // namespace

int main() {
  print_functions();
  print_normals();
  print("picture", membranes());
  print_patches();
  return 0;
}
