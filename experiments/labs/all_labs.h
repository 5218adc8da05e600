// The list of labs: a function per lab, in a source of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "experiments/labs/lab.h"

namespace triptych::labs {

Lab lab_0_watch();
Lab lab_1_array();
Lab lab_3_compiler();
Lab lab_5_clock();

inline std::vector<Lab> all_labs() {
  return {
      lab_0_watch(),
      lab_1_array(),
      lab_3_compiler(),
      lab_5_clock(),
  };
}

}  // namespace triptych::labs
