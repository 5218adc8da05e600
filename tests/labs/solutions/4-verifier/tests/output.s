# The output unit: scale and bias, biases of which two are loaded anew, ReLU, a mask of three columns.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16  shape=4x4
.input  w address=32   type=bf16  shape=4x4
.input  b address=64   type=f32   shape=4
.input  s address=80   type=f32   shape=4
.input  c address=96   type=f32   shape=2
.output t address=128  type=f32   shape=4x4
.output u address=192  type=f32   shape=4x4
.output m address=256  type=uint8 shape=4

.values x 1 2 -1 3
.values x 2 -1 1 0
.values x -3 1 2 1
.values x 1 1 1 1
.values w 1 -2 3 1
.values w 2 1 -1 4
.values w 0 3 1 -1
.values w 1 -1 2 2
.values b 1 -2 10 0.5
.values s 0.5 3 -1 1.25
.values c 100 200
.expect t 5 -20 4 20.5
.expect t 1 -8 2 -3.25
.expect t 1 34 16 1.75
.expect t 3 1 5 8
.expect u 108 194 16 16.5
.expect u 100 198 18 0
.expect u 100 212 4 1.5
.expect u 104 201 15 6.5
.expect m 5 4 2 7

load           signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream     in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps       channels=4 kernel_width=1 log2_group=2
weight_load    address=w pitch=8 rows=4 columns=4
matmul         wait=load signal=store count=4 rows_left=1 columns_left=4
# file 0 and then file 1, 16 bytes on
load_registers address=b columns=4 file=0 more=1 pitch=16
set_output     out_height=1 out_width=4 step_x=16
store          wait=compute scale=1 bias=1 address=t count=4 columns=4 rows_left=1 columns_left=4
load_registers address=c columns=2 file=0
store          bias=1 relu=1 address=u count=4 columns=4 rows_left=1 columns_left=4
set_output     out_height=1 out_width=4 step_x=1
store          mask=1 address=m count=4 columns=3 rows_left=1 columns_left=4
halt
