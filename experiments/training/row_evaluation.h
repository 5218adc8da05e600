// Scores of a model that returns a row for each example: classes of images and tokens, values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "experiments/training/data/metrics.h"
#include "experiments/training/run_config.h"

namespace triptych::training {

/// One example. Its elements are its class, those of its tokens, or its values.
struct RowJudgement {
  std::string name;
  std::int64_t counted = 0;  ///< elements that have a class, or values
  std::int64_t right = 0;    ///< of classes
  double loss = 0;           ///< cross-entropy or squared error, mean over them, 0 without any
  /// A single element's class, the likeliest one and its probability.
  std::int64_t truth = -1, predicted = -1;
  double probability = 0;
};

class RowEvaluation {
 public:
  explicit RowEvaluation(const RunConfig& config);

  /// An example, its row of the network's output and of the target, each [1, ...].
  void add(const std::string& name, const Tensor& row, const Tensor& target);

  const std::vector<RowJudgement>& rows() const { return rows_; }
  /// Share of the counted elements with the right likeliest class. 1 without any, and for values.
  double accuracy() const;
  /// Mean over the examples that count.
  double loss() const;
  /// Examples and accuracy. Nothing of single classes.
  segmentation::Scores scores() const;
  /// Elements by their true and predicted class, where there are any.
  const std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>& confusion() const {
    return confusion_;
  }

 private:
  RowJudgement judge_classes(const Tensor& row, const Tensor& target);

  bool has_classes_;
  std::vector<RowJudgement> rows_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confusion_;
};

}  // namespace triptych::training
