# y = ReLU((x - mean) factor + bias) with factor = scale inverse: 453 cycles.
# SPDX-License-Identifier: Apache-2.0
.input  p address=0    type=f32 shape=4x4
.input  x address=64   type=f32 shape=64x4
.output y address=2048 type=f32 shape=64x4

# p in rows 0 to 3 and x in rows 4 to 67: they follow each other in DRAM
vector_load  address=p pitch=16 row=0 count=68 columns=4
# the factor, once for all positions
vector_op    operation=multiply destination=1 a=1 b=2 count=1
# b and c have a step of 0: the same row for every position
vector_op    operation=subtract destination=4 step=1 a=4 a_step=1 b=0 count=64
vector_op    operation=fma destination=4 step=1 a=4 a_step=1 b=1 c=3 count=64
vector_op    operation=larger destination=4 step=1 a=4 a_step=1 constant=1 scalar=0 count=64
vector_store address=y pitch=16 row=4 count=64 columns=4
halt
