# y = x w, 4 x 4 each, on the array mmu4 of 4 x 4 cells.
.input  x address=0  type=bf16 shape=4x4
.input  w address=32 type=bf16 shape=4x4
.output y address=64 type=f32  shape=4x4
load        signal=compute address=x pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2
set_stream  in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1
set_taps    channels=4 kernel_width=1 log2_group=2
weight_load address=w pitch=8 rows=4 columns=4
matmul      wait=load signal=store count=4 rows_left=1 columns_left=4
set_output  out_height=1 out_width=4 step_x=16
store       wait=compute address=y count=4 columns=4 rows_left=1 columns_left=4
halt
