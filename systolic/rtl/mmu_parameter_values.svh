// The parameters of mmu_top in a module that has the same ones.
// SPDX-License-Identifier: Apache-2.0
    .Rows(Rows),
    .Columns(Columns),
    .PeKind(PeKind),
    .PeLatency(PeLatency),
    .BufferRows(BufferRows),
    .AccumulatorRows(AccumulatorRows),
    .WeightTiles(WeightTiles),
    .QueueDepth(QueueDepth),
    .ArrayKind(ArrayKind),
    .OutputStationary(OutputStationary),
    .VectorRows(VectorRows)
