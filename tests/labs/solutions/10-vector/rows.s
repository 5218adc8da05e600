# z = (x - mean) / sqrt(variance + 1e-5) of each row of x: 870 cycles.
# SPDX-License-Identifier: Apache-2.0
.input  x     address=0    type=f32 shape=32x4
.input  lanes address=512  type=f32 shape=4x4
.output z     address=2048 type=f32 shape=32x4
.values lanes 1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1

# x in rows 0 to 31, lanes in rows 32 to 35
vector_load  address=x pitch=16 row=0 count=36 columns=4
# the sum of a row in each of its lanes: first lane l + 2, then lane l + 1
vector_op    operation=rotate scalar=2 destination=64 step=1 a=0 a_step=1 count=32
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=0 b_step=1 count=32
vector_op    operation=rotate scalar=1 destination=96 step=1 a=64 a_step=1 count=32
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=96 b_step=1 count=32
vector_op    operation=multiply destination=64 step=1 a=64 a_step=1 constant=1 scalar=0x3e800000 count=32
vector_op    operation=subtract destination=0 step=1 a=0 a_step=1 b=64 b_step=1 count=32
# the same for the squares of the differences
vector_op    operation=multiply destination=64 step=1 a=0 a_step=1 b=0 b_step=1 count=32
vector_op    operation=rotate scalar=2 destination=96 step=1 a=64 a_step=1 count=32
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=96 b_step=1 count=32
vector_op    operation=rotate scalar=1 destination=96 step=1 a=64 a_step=1 count=32
vector_op    operation=add destination=64 step=1 a=64 a_step=1 b=96 b_step=1 count=32
# lane l of row 40 + i has the sum of row 4 i + l: 8 rows of different numbers, not 32
vector_op    operation=multiply destination=40 step=1 a=64 a_step=4 b=32 count=8
vector_op    operation=fma destination=40 step=1 a=65 a_step=4 b=33 c=40 c_step=1 count=8
vector_op    operation=fma destination=40 step=1 a=66 a_step=4 b=34 c=40 c_step=1 count=8
vector_op    operation=fma destination=40 step=1 a=67 a_step=4 b=35 c=40 c_step=1 count=8
# v = sum / 4 + epsilon
vector_op    operation=multiply destination=40 step=1 a=40 a_step=1 constant=1 scalar=0x3e800000 count=8
vector_op    operation=add destination=40 step=1 a=40 a_step=1 constant=1 scalar=0x3727c5ac count=8
# r in rows 48 to 55 by three steps of Newton's method, with h = -v / 2 in rows 40 to 47
vector_op    operation=fill destination=36 constant=1 scalar=0x5f3759df count=1
vector_op    operation=fill destination=37 constant=1 scalar=0x3fc00000 count=1
vector_op    operation=shift_right destination=48 step=1 a=40 a_step=1 constant=1 scalar=1 count=8
vector_op    operation=subtract_integer destination=48 step=1 a=36 b=48 b_step=1 count=8
vector_op    operation=multiply destination=40 step=1 a=40 a_step=1 constant=1 scalar=0xbf000000 count=8
vector_op    operation=multiply destination=56 step=1 a=48 a_step=1 b=48 b_step=1 count=8
vector_op    operation=fma destination=56 step=1 a=40 a_step=1 b=56 b_step=1 c=37 count=8
vector_op    operation=multiply destination=48 step=1 a=48 a_step=1 b=56 b_step=1 count=8
vector_op    operation=multiply destination=56 step=1 a=48 a_step=1 b=48 b_step=1 count=8
vector_op    operation=fma destination=56 step=1 a=40 a_step=1 b=56 b_step=1 c=37 count=8
vector_op    operation=multiply destination=48 step=1 a=48 a_step=1 b=56 b_step=1 count=8
vector_op    operation=multiply destination=56 step=1 a=48 a_step=1 b=48 b_step=1 count=8
vector_op    operation=fma destination=56 step=1 a=40 a_step=1 b=56 b_step=1 c=37 count=8
vector_op    operation=multiply destination=48 step=1 a=48 a_step=1 b=56 b_step=1 count=8
# r of each row in all of its lanes, in rows 64 to 95
vector_op    operation=broadcast scalar=0 destination=64 step=4 a=48 a_step=1 count=8
vector_op    operation=broadcast scalar=1 destination=65 step=4 a=48 a_step=1 count=8
vector_op    operation=broadcast scalar=2 destination=66 step=4 a=48 a_step=1 count=8
vector_op    operation=broadcast scalar=3 destination=67 step=4 a=48 a_step=1 count=8
vector_op    operation=multiply destination=0 step=1 a=0 a_step=1 b=64 b_step=1 count=32
vector_store address=z pitch=16 row=0 count=32 columns=4
halt
