# y = x minus the mean of each column, for four rows of four numbers.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0  type=f32 shape=4x4
.output y address=64 type=f32 shape=4x4

# x in rows 0 to 3; rows are 16 bytes apart in DRAM
vector_load  address=x pitch=16 row=0 count=4 columns=4
# rows 4 and 5: rows 0 and 1 plus rows 2 and 3
vector_op    operation=add destination=4 step=1 a=0 a_step=1 b=2 b_step=1 count=2
# row 4: the sum of all rows
vector_op    operation=add destination=4 a=4 b=5 count=1
# times -0.25, whose bits are 0xbe800000
vector_op    operation=multiply destination=4 a=4 constant=1 scalar=0xbe800000 count=1
# added to every row: b has no step, so it is row 4 for all four
vector_op    operation=add destination=0 step=1 a=0 a_step=1 b=4 count=4
vector_store address=y pitch=16 row=0 count=4 columns=4
halt
