# y = x w, output-stationary: four rows of x meet both tiles of a column of w, and their sums stay in
# the cells until the last one: 145 cycles.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=8x8
.input  w address=1024 type=bf16 shape=8x8
.output y address=2048 type=f32  shape=8x8

# x in two loads, so that the first matmul waits for four lines only
load        signal=compute address=x    pitch=16 buffer_row=0 buffer_pitch=2 units=2 lines=4 log2_group=2
load        signal=compute address=x+64 pitch=16 buffer_row=8 buffer_pitch=2 units=2 lines=4 log2_group=2
set_stream  in_height=1 in_width=8 out_height=1 out_width=8 stride_x=1 step_x=2
set_taps    channels=8 kernel_width=1 log2_group=2
set_output  out_height=1 out_width=8 step_x=32
# tiles come in the order of the matmuls, and at most four wait: each tile twice, for rows 0 to 3 of x and 4 to 7
weight_load stream=1 address=w+0 pitch=16 rows=4 columns=4
weight_load stream=1 address=w+64 pitch=16 rows=4 columns=4
weight_load stream=1 address=w+0 pitch=16 rows=4 columns=4
weight_load stream=1 address=w+64 pitch=16 rows=4 columns=4
matmul      wait=load transpose=1 output_stationary=1 count=4 address=0 x=0 rows_left=1 columns_left=8
weight_load stream=1 address=w+8 pitch=16 rows=4 columns=4
matmul      transpose=1 output_stationary=1 accumulate=1 drain=1 signal=store offset=1 channel=4 count=4 address=0 x=0 rows_left=1 columns_left=8 accumulator=0
weight_load stream=1 address=w+72 pitch=16 rows=4 columns=4
matmul      wait=load transpose=1 output_stationary=1 count=4 address=8 x=4 rows_left=1 columns_left=4
weight_load stream=1 address=w+8 pitch=16 rows=4 columns=4
matmul      transpose=1 output_stationary=1 accumulate=1 drain=1 signal=store offset=1 channel=4 count=4 address=8 x=4 rows_left=1 columns_left=4 accumulator=4
weight_load stream=1 address=w+72 pitch=16 rows=4 columns=4
matmul      transpose=1 output_stationary=1 count=4 address=0 x=0 rows_left=1 columns_left=8
matmul      transpose=1 output_stationary=1 accumulate=1 drain=1 signal=store offset=1 channel=4 count=4 address=0 x=0 rows_left=1 columns_left=8 accumulator=8
matmul      transpose=1 output_stationary=1 count=4 address=8 x=4 rows_left=1 columns_left=4
matmul      transpose=1 output_stationary=1 accumulate=1 drain=1 signal=store offset=1 channel=4 count=4 address=8 x=4 rows_left=1 columns_left=4 accumulator=12
store       wait=compute address=y+0 count=4 columns=4 rows_left=1 columns_left=8 accumulator=0
store       wait=compute address=y+128 count=4 columns=4 rows_left=1 columns_left=4 accumulator=4
store       wait=compute address=y+16 count=4 columns=4 rows_left=1 columns_left=8 accumulator=8
store       wait=compute address=y+144 count=4 columns=4 rows_left=1 columns_left=4 accumulator=12
halt
