# Nine matmuls of a position each. Eight are in flight together: the ninth waits for room, and no
# other one does.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=9x4
.input  w address=128  type=bf16 shape=4x4
.output y address=256  type=f32  shape=9x4

.values x 1 -2 0 3
.values x 2 -1 2 2
.values x 3 0 4 1
.values x 4 1 6 0
.values x 5 2 8 -1
.values x 6 3 10 -2
.values x 7 4 12 -3
.values x 8 5 14 -4
.values x 9 6 16 -5
.values w 1 0 2 1
.values w 0 1 1 1
.values w 1 1 0 3
.values w 2 0 1 1
.expect y 7 -2 3 2
.expect y 8 1 5 9
.expect y 9 4 7 16
.expect y 10 7 9 23
.expect y 11 10 11 30
.expect y 12 13 13 37
.expect y 13 16 15 44
.expect y 14 19 17 51
.expect y 15 22 19 58
.expect stall_in_flight_cycles 5
.expect cycles 50

load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=9 log2_group=2
set_stream  in_height=1 in_width=1 out_height=1 out_width=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load address=0 accumulator=0 count=1 rows_left=1 columns_left=1
matmul      keep=1 address=1 accumulator=1 count=1 rows_left=1 columns_left=1
matmul      keep=1 address=2 accumulator=2 count=1 rows_left=1 columns_left=1
matmul      keep=1 address=3 accumulator=3 count=1 rows_left=1 columns_left=1
matmul      keep=1 address=4 accumulator=4 count=1 rows_left=1 columns_left=1
matmul      keep=1 address=5 accumulator=5 count=1 rows_left=1 columns_left=1
matmul      keep=1 address=6 accumulator=6 count=1 rows_left=1 columns_left=1
matmul      keep=1 address=7 accumulator=7 count=1 rows_left=1 columns_left=1
matmul      keep=1 signal=store address=8 accumulator=8 count=1 rows_left=1 columns_left=1
set_output  out_height=1 out_width=9 step_x=16
store       wait=compute address=y count=9 columns=4 rows_left=1 columns_left=9
halt
