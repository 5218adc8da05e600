# Sixteen instructions wait for the store unit while its first one waits for the array; the load
# behind them is dispatched all the same.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=2x4
.input  v address=64   type=bf16 shape=16x4
.input  w address=256  type=bf16 shape=4x4
.output y address=512  type=f32  shape=2x4
.output z address=576  type=f32  shape=2x4

.values x 1 2 3 4
.values x 2 3 4 5
.values v 5 6 7 8
.values v 3 4 5 6
.values v 1 2 3 4
.values v -1 0 1 2
.values v -3 -2 -1 0
.values v -5 -4 -3 -2
.values v -7 -6 -5 -4
.values v -9 -8 -7 -6
.values v -11 -10 -9 -8
.values v -13 -12 -11 -10
.values v -15 -14 -13 -12
.values v -17 -16 -15 -14
.values v -19 -18 -17 -16
.values v -21 -20 -19 -18
.values v -23 -22 -21 -20
.values v -25 -24 -23 -22
.values w 1 0 2 1
.values w 0 1 1 1
.values w 1 1 0 3
.values w 2 0 1 1
.expect y 12 5 8 16
.expect y 16 7 12 22
.expect z -84 -43 -88 -128
.expect z -92 -47 -96 -140
.expect cycles 58

load        signal=compute address=x pitch=8 buffer_row=0 buffer_pitch=1 units=1 lines=2 log2_group=2
set_stream  in_height=1 in_width=2 out_height=1 out_width=2 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
set_output  out_height=1 out_width=2 step_x=16
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=store count=2 rows_left=1 columns_left=2
store       wait=compute address=y count=2 columns=4 rows_left=1 columns_left=2
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
set_output  out_height=1 out_width=2 step_x=16
load        signal=compute address=v pitch=8 buffer_row=8 buffer_pitch=1 units=1 lines=16 log2_group=2
matmul      wait=load signal=store keep=1 address=22 accumulator=2 count=2 rows_left=1 columns_left=2
store       wait=compute address=z accumulator=2 count=2 columns=4 rows_left=1 columns_left=2
halt
