# y = x w, weight-stationary: each tile of w meets all eight rows of x.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=8x8
.input  w address=1024 type=bf16 shape=8x8
.output y address=2048 type=f32  shape=8x8

# eight lines of x, two groups of four numbers each: position p begins at buffer row 2 p
load        signal=compute address=x pitch=16 buffer_row=0 buffer_pitch=2 units=2 lines=8 log2_group=2
set_stream  in_height=1 in_width=8 out_height=1 out_width=8 stride_x=1 step_x=2
set_taps    channels=8 kernel_width=1 log2_group=2
set_output  out_height=1 out_width=8 step_x=32
# columns 0 to 3 of y: k = 0 to 3, then k = 4 to 7
weight_load address=w    pitch=16 rows=4 columns=4
weight_load address=w+64 pitch=16 rows=4 columns=4
# columns 4 to 7
weight_load address=w+8  pitch=16 rows=4 columns=4
weight_load address=w+72 pitch=16 rows=4 columns=4
matmul      wait=load count=8 rows_left=1 columns_left=8
matmul      accumulate=1 signal=store offset=1 channel=4 count=8 rows_left=1 columns_left=8
matmul      count=8 rows_left=1 columns_left=8 accumulator=8
matmul      accumulate=1 signal=store offset=1 channel=4 count=8 rows_left=1 columns_left=8 accumulator=8
store       wait=compute address=y count=8 columns=4 rows_left=1 columns_left=8
store       wait=compute address=y+16 count=8 columns=4 rows_left=1 columns_left=8 accumulator=8
halt
