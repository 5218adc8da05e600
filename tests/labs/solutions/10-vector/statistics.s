# Mean and variance of each column of x: 434 cycles.
# SPDX-License-Identifier: Apache-2.0
.input  x        address=0    type=f32 shape=64x4
.output mean     address=2048 type=f32 shape=1x4
.output variance address=2064 type=f32 shape=1x4

# x in rows 0 to 63, sums from row 64 on; scalar 0x3c800000 is 1 / 64
vector_load  address=x pitch=16 row=0 count=64 columns=4
vector_op    operation=add destination=64 step=1 a=0 a_step=1 b=32 b_step=1 count=32
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=80 b_step=1 count=16
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=72 b_step=1 count=8
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=68 b_step=1 count=4
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=66 b_step=1 count=2
vector_op    operation=add destination=64 a=64 b=65 count=1
vector_op    operation=multiply destination=96 a=64 constant=1 scalar=0x3c800000 count=1
vector_op    operation=subtract destination=0 step=1 a=0 a_step=1 b=96 count=64
vector_op    operation=multiply destination=0 step=1 a=0 a_step=1 b=0 b_step=1 count=64
vector_op    operation=add destination=0 step=1 a=0 a_step=1 b=32 b_step=1 count=32
vector_op    operation=add destination=0 step=1 a=0 a_step=1 b=16 b_step=1 count=16
vector_op    operation=add destination=0 step=1 a=0 a_step=1 b=8 b_step=1 count=8
vector_op    operation=add destination=0 step=1 a=0 a_step=1 b=4 b_step=1 count=4
vector_op    operation=add destination=0 step=1 a=0 a_step=1 b=2 b_step=1 count=2
vector_op    operation=add destination=0 a=0 b=1 count=1
vector_op    operation=multiply destination=97 a=0 constant=1 scalar=0x3c800000 count=1
vector_store address=mean pitch=16 row=96 count=2 columns=4
halt
