# Numbers that a sum must round, and those that are none; then ReLU of them, and bf16.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0   type=bf16 shape=4x4
.input  w address=32  type=bf16 shape=4x4
.output y address=64  type=f32  shape=4x4
.output r address=128 type=f32  shape=4x4
.output n address=192 type=bf16 shape=4x4

.values x 4096 1 0 0
.values x 1.08420217e-19 0 0 0
.values x inf 1 0 0
.values x 0 1 0.01171875 0
.values w 4096 4096 1.08420217e-19 0
.values w 1 1.0078125 0 1
.values w 0 0 0 1
.values w 0 0 0 0

# y[0][0]: 2^24 + 1 is a tie, and goes to the even 2^24. y[0][1]: 2^24 + 1.0078125 is above it.
# y[1][2]: the smallest normal number. y[2][3]: infinity times zero, which is no number.
.expect y 16777216 16777218 4.4408921e-16 1
.expect y 4.4408921e-16 4.4408921e-16 1.17549435e-38 0
.expect y inf inf inf nan
.expect y 1 1.0078125 0 1.01171875
# n[3][3]: 1 + 2^-7 + 2^-8 is a tie between odd and even, and goes up
.expect r 16777216 16777218 4.4408921e-16 1
.expect r 4.4408921e-16 4.4408921e-16 1.17549435e-38 0
.expect r inf inf inf nan
.expect r 1 1.0078125 0 1.01171875
.expect n 16777216 16777216 4.4408921e-16 1
.expect n 4.4408921e-16 4.4408921e-16 1.17549435e-38 0
.expect n inf inf inf nan
.expect n 1 1.0078125 0 1.015625

load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=store count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=16
store       wait=compute address=y count=4 columns=4 rows_left=1 columns_left=4
store       relu=1 address=r count=4 columns=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=8
store       narrow=1 address=n count=4 columns=4 rows_left=1 columns_left=4
halt
