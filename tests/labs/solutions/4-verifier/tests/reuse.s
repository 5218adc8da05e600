# The second load takes the place of the first: it waits until the array has read it, and no longer.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=2x4
.input  v address=64   type=bf16 shape=2x4
.input  w address=256  type=bf16 shape=4x4
.output y address=512  type=f32  shape=2x4
.output z address=576  type=f32  shape=2x4

.values x 1 2 3 4
.values x 2 3 4 5
.values v 5 6 7 8
.values v 3 4 5 6
.values w 1 0 2 1
.values w 0 1 1 1
.values w 1 1 0 3
.values w 2 0 1 1
.expect y 12 5 8 16
.expect y 16 7 12 22
.expect z 28 13 24 40
.expect z 20 9 16 28
.expect cycles 41

load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=2 log2_group=2
set_stream  in_height=1 in_width=2 out_height=1 out_width=2 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=load,store count=2 rows_left=1 columns_left=2
load        wait=compute signal=compute address=v pitch=8 buffer_pitch=1 units=1 lines=2 log2_group=2
matmul      wait=load signal=store keep=1 accumulator=2 count=2 rows_left=1 columns_left=2
set_output  out_height=1 out_width=2 step_x=16
store       wait=compute address=y count=2 columns=4 rows_left=1 columns_left=2
store       wait=compute address=z accumulator=2 count=2 columns=4 rows_left=1 columns_left=2
halt
