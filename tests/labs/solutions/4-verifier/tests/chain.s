# y = x w over two tiles, z by a third one: a chain that goes on, and one that begins.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0   type=bf16 shape=4x8
.input  w address=64  type=bf16 shape=12x4
.output y address=160 type=f32  shape=4x4
.output z address=224 type=f32  shape=4x4

.values x -3 2 0 -2 3 1 -1 -3
.values x 0 -2 3 1 -1 -3 2 0
.values x 3 1 -1 -3 2 0 -2 3
.values x -1 -3 2 0 -2 3 1 -1
.values w -2 1 -1 2
.values w 0 -2 1 -1
.values w 2 0 -2 1
.values w -1 2 0 -2
.values w 1 -1 2 0
.values w -2 1 -1 2
.values w 0 -2 1 -1
.values w 2 0 -2 1
.values w -1 2 0 -2
.values w 1 -1 2 0
.values w -2 1 -1 2
.values w 0 -2 1 -1
.expect y 3 -11 15 -4
.expect y 10 0 -5 -5
.expect y 3 -3 -4 15
.expect y -4 8 -10 7
.expect z 5 -4 2 8
.expect z -8 3 -6 5
.expect z 0 10 0 -5
.expect z -6 3 -8 6

load        signal=compute address=x pitch=16 buffer_pitch=2 units=2 lines=4 log2_group=2
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=2
set_taps    channels=8 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
weight_load address=w+32 pitch=8 rows=4 columns=4
weight_load address=w+64 pitch=8 rows=4 columns=4
matmul      wait=load count=4 rows_left=1 columns_left=4
# four positions: the sums that it goes on with are not written yet
matmul      accumulate=1 offset=1 channel=4 count=4 rows_left=1 columns_left=4
matmul      signal=store accumulator=4 count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=16
store       wait=compute address=y count=4 columns=4 rows_left=1 columns_left=4
store       address=z accumulator=4 count=4 columns=4 rows_left=1 columns_left=4
halt
