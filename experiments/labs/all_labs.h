// The list of labs: a function per lab, in a source of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "experiments/labs/lab.h"

namespace triptych::labs {

Lab lab_0_watch();
Lab lab_1_array();
Lab lab_2_shapes();
Lab lab_3_compiler();
Lab lab_4_verifier();
Lab lab_5_clock();
Lab lab_6_cuda();
Lab lab_7_bandwidth();
Lab lab_8_ring();
Lab lab_9_machines();

inline std::vector<Lab> all_labs() {
  return {
      lab_0_watch(), lab_1_array(), lab_2_shapes(),    lab_3_compiler(), lab_4_verifier(),
      lab_5_clock(), lab_6_cuda(),  lab_7_bandwidth(), lab_8_ring(),     lab_9_machines(),
  };
}

}  // namespace triptych::labs
