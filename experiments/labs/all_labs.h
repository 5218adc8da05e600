// The list of labs: a function per lab in C++, a name per lab in Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "experiments/labs/lab.h"
#include "experiments/labs/python_lab.h"

namespace triptych::labs {

Lab lab_1_array();
Lab lab_3_compiler();
Lab lab_4_verifier();
Lab lab_5_clock();
Lab lab_6_cuda();
Lab lab_8_ring();

inline std::vector<Lab> all_labs() {
  return {
      python_lab(lab_texts(), "0-watch"),
      lab_1_array(),
      python_lab(lab_texts(), "2-shapes"),
      lab_3_compiler(),
      lab_4_verifier(),
      lab_5_clock(),
      lab_6_cuda(),
      python_lab(lab_texts(), "7-bandwidth"),
      lab_8_ring(),
      python_lab(lab_texts(), "9-machines"),
  };
}

}  // namespace triptych::labs
