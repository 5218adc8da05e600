# The largest of 2 x 2 positions; in column 3 the first one is a NaN, which stays.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0  type=bf16 shape=4x4
.input  w address=32 type=bf16 shape=4x4
.output y address=64 type=f32  shape=4

.values x 0 1 0 0
.values x 0 0 1 0
.values x 0 0 0 1
.values x 1 0 0 0
.values w 1 5 -3 inf
.values w 4 2 -1 7
.values w 3 9 -8 1
.values w 2 6 -2 4
.expect y 4 9 -1 nan

load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=store count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=1 step_x=16 pool_pitch=2 pool_wrap_y=2 pool_wrap_n=2
store       wait=compute pool=1 address=y count=1 columns=4 rows_left=1 columns_left=1
halt
