# y = ReLU(x w), x 16 x 8, w 8 x 8, on an array of 4 x 4: 151 cycles.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=16x8
.input  w address=1024 type=bf16 shape=8x8
.output y address=2048 type=f32  shape=16x8
weight_load address=1024 pitch=16 rows=4 columns=4
load        signal=compute address=0 pitch=16 buffer_row=0 buffer_pitch=2 units=1 lines=4 log2_group=2
weight_load address=1088 pitch=16 rows=4 columns=4
load        signal=compute address=64 pitch=16 buffer_row=8 buffer_pitch=2 units=1 lines=12 log2_group=2
load        signal=compute address=8 pitch=16 buffer_row=1 buffer_pitch=2 units=1 lines=16 log2_group=2
set_stream  in_height=1 in_width=16 out_height=1 out_width=16 stride_x=1 step_x=2
set_taps    channels=8 kernel_width=1 log2_group=2
set_output  out_height=1 out_width=16 step_x=32
weight_load address=1032 pitch=16 rows=4 columns=4
weight_load address=1096 pitch=16 rows=4 columns=4
matmul      wait=load count=4 address=0 x=0 rows_left=1 columns_left=16 accumulator=0
matmul      wait=load keep=1 count=12 address=8 x=4 rows_left=1 columns_left=12 accumulator=4
matmul      wait=load signal=store count=16 address=0 x=0 rows_left=1 columns_left=16 accumulator=0 accumulate=1 offset=1 channel=4
matmul      count=16 address=0 x=0 rows_left=1 columns_left=16 accumulator=16
matmul      signal=store count=8 address=0 x=0 rows_left=1 columns_left=16 accumulator=16 accumulate=1 offset=1 channel=4
matmul      keep=1 signal=store count=8 address=16 x=8 rows_left=1 columns_left=8 accumulator=24 accumulate=1 offset=1 channel=4
store       wait=compute relu=1 address=2048 count=16 columns=4 rows_left=1 columns_left=16 accumulator=0
store       wait=compute relu=1 address=2064 count=8 columns=4 rows_left=1 columns_left=16 accumulator=16
store       wait=compute relu=1 address=2320 count=8 columns=4 rows_left=1 columns_left=8 accumulator=24
halt
