# 3 x 3 taps over two pictures of 3 x 2 with a border of zeros. The pictures lie apart, in the buffer
# (ten rows) and in the result (eight positions), and what lies around them is not zero.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0   type=bf16 shape=22x1
.input  w address=64  type=bf16 shape=9x4
.output y address=256 type=f32  shape=6x4
.output z address=384 type=f32  shape=6x4

.values x 21 22 23
.values x 1 3 4 6 7 9
.values x 24 25 26 27
.values x 8 10 11 2 3 5
.values x 28 29 30
.values w -3 0 3 -1
.values w 1 -3 0 3
.values w -2 1 -3 0
.values w 2 -2 1 -3
.values w -1 2 -2 1
.values w 3 -1 2 -2
.values w 0 3 -1 2
.values w -3 0 3 -1
.values w 1 -3 0 3
.expect y 2 -19 16 9
.expect y -19 16 9 2
.expect y -3 -25 16 15
.expect y -25 16 15 7
.expect y 12 -1 -14 1
.expect y -1 -14 1 2
.expect z -9 0 37 -17
.expect z 0 37 -17 6
.expect z -21 -9 -39 43
.expect z -9 -39 43 -8
.expect z 19 -30 -2 26
.expect z -30 -2 26 -9

# a group of one: a value fills all lanes
load        signal=compute address=x pitch=2 buffer_row=17 buffer_pitch=1 units=1 lines=22 log2_group=0
# the first position is (-1, -1), three buffer rows before the picture
set_stream  in_height=3 in_width=2 restart_y=-1 restart_x=-1 out_height=3 out_width=2 stride_y=1 stride_x=1 step_x=1 wrap_y=1 wrap_n=5
set_taps    channels=1 kernel_width=3 step_dy=1 step_dx=1 log2_group=0 jump_x=1
weight_load address=w    pitch=8 rows=4 columns=4
weight_load address=w+32 pitch=8 rows=4 columns=4
weight_load address=w+64 pitch=8 rows=1 columns=4
matmul      wait=load count=12 y=-1 x=-1 address=17 rows_left=3 columns_left=2
matmul      accumulate=1 count=12 y=-1 x=-1 dy=1 dx=1 offset=3 kernel_x=1 address=17 rows_left=3 columns_left=2
matmul      accumulate=1 signal=store count=12 y=-1 x=-1 dy=2 dx=2 offset=6 kernel_x=2 address=17 rows_left=3 columns_left=2
set_output  out_height=3 out_width=2 step_x=16 wrap_y=16 wrap_n=48
store       wait=compute address=y count=12 columns=4 rows_left=3 columns_left=2
halt
