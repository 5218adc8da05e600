// Rate of the processor's multiply-adds: a loop that waits for neither memory nor results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::cpu {

/// FLOP/s of float32 multiply-adds on `threads` threads at once: the best of several windows,
/// together about 50 ms. Other programs that run meanwhile make it smaller.
double measured_peak(int threads);

}  // namespace triptych::cpu
