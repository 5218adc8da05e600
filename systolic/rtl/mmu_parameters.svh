// The parameters of a machine, for mmu_top and the modules around it.
// SPDX-License-Identifier: Apache-2.0
    parameter int unsigned Rows = 4,               // 2 to 256
    parameter int unsigned Columns = 4,            // 2 to 256
    parameter int unsigned PeKind = 0,             // 0: bf16, 1: int8
    parameter int unsigned PeLatency = 1,          // cycles that a sum takes through a PE, 1 to 3
    parameter int unsigned BufferRows = 256,       // power of two
    parameter int unsigned AccumulatorRows = 128,  // power of two, up to 32768
    parameter int unsigned WeightTiles = 4,
    parameter int unsigned QueueDepth = 16,
    parameter int unsigned ArrayKind = 0,  // 0: simulates fast, 1: grid and banks, to synthesise
    parameter int unsigned OutputStationary = 0,  // 1: that dataflow, too. PeLatency is 1 then
    parameter int unsigned VectorRows = 0  // of a vector unit (a power of two). 0: none
