# y = x w, 4 x 4 each: a test of the array.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0  type=bf16 shape=4x4
.input  w address=32 type=bf16 shape=4x4
.output y address=64 type=f32  shape=4x4

.values x  1  2  3  4
.values x  5  6  7  8
.values x  9 10 11 12
.values x 13 14 15 16

.values w  1  2  0  1
.values w  0  1  3  1
.values w  2  0  1  1
.values w  1  1  0  2

# y[0][0] is 1 * 1 + 2 * 0 + 3 * 2 + 4 * 1
.expect y 11  8  9 14
.expect y 27 24 25 34
.expect y 43 40 41 54
.expect y 59 56 57 74

# x into the buffer: four lines of a group of four values
load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2
# four positions in a row, a buffer row apart; four values for each
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
# positions stand 16 bytes apart in y
set_output  out_height=1 out_width=4 step_x=16
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=store count=4 rows_left=1 columns_left=4
store       wait=compute address=y count=4 columns=4 rows_left=1 columns_left=4
halt
