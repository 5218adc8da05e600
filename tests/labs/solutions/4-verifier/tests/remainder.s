# A tile of two rows and two columns, in a place of the FIFO where a whole one lay before: its other
# rows add nothing, its other columns keep the sums that they have.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0   type=bf16 shape=4x4
.input  w address=32  type=bf16 shape=4x4
.input  v address=64  type=bf16 shape=2x2
.output y address=128 type=f32  shape=4x4

.values x 1 2 3 4
.values x 2 3 4 5
.values x 3 4 5 6
.values x 4 5 6 7
.values w -4 -2 0 2
.values w 1 3 -4 -2
.values w -3 -1 1 3
.values w 2 4 -3 -1
.values v 3 -2
.values v 1 5
.expect y 5 8 -17 3
.expect y 9 11 -23 5
.expect y 13 14 -29 7
.expect y 17 17 -35 9

load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
weight_load address=w pitch=8 rows=4 columns=4
weight_load address=w pitch=8 rows=4 columns=4
weight_load address=w pitch=8 rows=4 columns=4
weight_load address=v pitch=4 rows=2 columns=2
matmul      wait=load count=4 rows_left=1 columns_left=4
matmul      count=4 rows_left=1 columns_left=4
matmul      count=4 rows_left=1 columns_left=4
matmul      count=4 rows_left=1 columns_left=4
matmul      signal=store count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=16
store       wait=compute address=y count=4 columns=4 rows_left=1 columns_left=4
halt
