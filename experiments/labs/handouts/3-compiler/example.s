# y = x w for the first four rows of x and the first four columns of w, k = 0 to 3 only.
# A full line of x has 16 bytes (8 numbers of bf16), a line of w 16, a line of y 32 (8 of f32).
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=16x8
.input  w address=1024 type=bf16 shape=8x8
.output y address=2048 type=f32  shape=4x4

# four lines of x, of each the first group of four numbers, into buffer rows 0, 2, 4, 6
load        signal=compute address=x pitch=16 buffer_row=0 buffer_pitch=2 units=1 lines=4 log2_group=2
# positions stand two buffer rows apart; 8 values each, in groups of four
set_stream  in_height=1 in_width=16 out_height=1 out_width=16 stride_x=1 step_x=2
set_taps    channels=8 kernel_width=1 log2_group=2
# the upper left tile of w
weight_load address=w pitch=16 rows=4 columns=4
# four positions through the array; the sums go to the accumulator rows 0 to 3
matmul      wait=load signal=store count=4 address=0 offset=0 channel=0 x=0 rows_left=1 columns_left=16 accumulator=0
# four positions of the accumulators to DRAM, 16 bytes apart
set_output  out_height=1 out_width=16 step_x=16
store       wait=compute address=y count=4 columns=4 rows_left=1 columns_left=16 accumulator=0
halt
