// Rates of the processor's multiply-adds: loops that wait for neither memory nor results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::cpu {

/// FLOP/s of float32 multiply-adds on `threads` threads at once: the best of several windows,
/// together about 50 ms. Other programs that run meanwhile make it smaller.
double measured_peak(int threads);

/// The same of bfloat16 multiply-adds on the tile unit, which must be there.
double measured_tile_peak(int threads);

}  // namespace triptych::cpu
