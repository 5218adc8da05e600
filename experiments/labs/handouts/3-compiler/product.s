# y = ReLU(x w), x 16 x 8, w 8 x 8, on an array of 4 x 4. Yours; example.s computes a corner of it.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=16x8
.input  w address=1024 type=bf16 shape=8x8
.output y address=2048 type=f32  shape=16x8

halt
