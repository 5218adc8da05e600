# Two loads, a token from each; the second one is long, and its last lines are needed.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=2x4
.input  v address=64   type=bf16 shape=24x4
.input  w address=256  type=bf16 shape=4x4
.output y address=512  type=f32  shape=2x4
.output z address=576  type=f32  shape=2x4

.values x 0 1 2 3
.values x 1 2 3 4
.values v 0 1 2 3
.values v 3 4 5 6
.values v 6 7 8 9
.values v 9 10 11 12
.values v 12 0 1 2
.values v 2 3 4 5
.values v 5 6 7 8
.values v 8 9 10 11
.values v 11 12 0 1
.values v 1 2 3 4
.values v 4 5 6 7
.values v 7 8 9 10
.values v 10 11 12 0
.values v 0 1 2 3
.values v 3 4 5 6
.values v 6 7 8 9
.values v 9 10 11 12
.values v 12 0 1 2
.values v 2 3 4 5
.values v 5 6 7 8
.values v 8 9 10 11
.values v 11 12 0 1
.values v 1 2 3 4
.values v 4 5 6 7
.values w 1 0 2 1
.values w 0 1 1 1
.values w 1 1 0 3
.values w 2 0 1 1
.expect y 8 3 4 10
.expect y 12 5 8 16
.expect z 12 5 8 16
.expect z 24 11 20 34

load        signal=compute address=x pitch=8 buffer_row=0 buffer_pitch=1 units=1 lines=2 log2_group=2
load        signal=compute address=v pitch=8 buffer_row=8 buffer_pitch=1 units=1 lines=24 log2_group=2
set_stream  in_height=1 in_width=2 out_height=1 out_width=2 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=store count=2 rows_left=1 columns_left=2
matmul      wait=load signal=store keep=1 address=30 accumulator=2 count=2 rows_left=1 columns_left=2
set_output  out_height=1 out_width=2 step_x=16
store       wait=compute address=y count=2 columns=4 rows_left=1 columns_left=2
store       wait=compute address=z accumulator=2 count=2 columns=4 rows_left=1 columns_left=2
halt
