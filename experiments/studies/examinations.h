// How each claim is tried. They throw the exceptions of the machines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/studies/claim.h"

namespace triptych::studies {

Finding examine_bandwidth(Laboratory& laboratory);
Finding examine_sram(Laboratory& laboratory);
Finding examine_transfers(Laboratory& laboratory);
Finding examine_batch(Laboratory& laboratory);
Finding examine_reuse(Laboratory& laboratory);
Finding examine_utilisation(Laboratory& laboratory);
Finding examine_matrix_units(Laboratory& laboratory);
Finding examine_cpu_parallelism(Laboratory& laboratory);
Finding examine_attention(Laboratory& laboratory);
Finding examine_ring(Laboratory& laboratory);
Finding examine_averaging(Laboratory& laboratory);
Finding examine_model_parallel_gradients(Laboratory& laboratory);
Finding examine_strategies(Laboratory& laboratory);

}  // namespace triptych::studies
